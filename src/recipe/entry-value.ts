/** How a lock is held: alone, or beside others that share it. */
export type LockMode = 'exclusive' | 'shared';

/**
 * The parts of an entry's value, `[shared:][id:<identity>:]<uuid>`. Entries of python-etcd and of `Lock` have only a uuid as
 * value, so they are exclusive.
 */
export interface EntryValue {
  readonly mode: LockMode;
  readonly identity: string | undefined;
  readonly uuid: string;
}

const SHARED = 'shared:';
const IDENTIFIED = /^id:(.+):([^:]+)$/s;

export const isShared = (value: string): boolean => value.startsWith(SHARED);

export function parseValue(value: string): EntryValue {
  const mode = isShared(value) ? 'shared' : 'exclusive';
  const rest = isShared(value) ? value.slice(SHARED.length) : value;
  const [, identity, uuid = rest] = IDENTIFIED.exec(rest) ?? [];
  return { mode, identity, uuid };
}

/** Returns the names of the client that made the entry, for people: its identity and its uuid, if it has them. */
export function namesOf({ identity, uuid }: Omit<EntryValue, 'mode'>): readonly [string, ...string[]] {
  const [first = '(no value)', ...others] = [identity, uuid].flatMap((name) => name || []);
  return [first, ...others];
}

export function formatValue({ mode, identity, uuid }: EntryValue): string {
  return `${mode === 'shared' ? SHARED : ''}${identity === undefined ? '' : `id:${identity}:`}${uuid}`;
}
