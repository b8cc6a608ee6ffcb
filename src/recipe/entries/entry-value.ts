/** How a lock is held: alone, or beside others that share it. */
export type LockMode = 'exclusive' | 'shared';

/**
 * The parts of an entry's value, `[shared:][id:<identity>:]<uuid>[@<label>]`. Entries of python-etcd and of `Lock` have only a
 * uuid as value, so they are exclusive.
 *
 * The label is percent-encoded, so the value has no ":" after the uuid. Versions of this package without labels therefore read the
 * same mode and identity from it.
 */
export interface EntryValue {
  /** Whether the entry shares the lock. */
  readonly mode: LockMode;
  /** Names the process across restarts: an entry of an earlier process with the same identity may be evicted. */
  readonly identity: string | undefined;
  /** Says who made the entry, for people. No rule depends on it. */
  readonly label: string | undefined;
  /** Identifies the hold or the wait that made the entry. */
  readonly uuid: string;
}

const SHARED = 'shared:';
const IDENTIFIED = /^id:(.+):([^:]+)$/s;
/** Only a uuid made by this package has a label: any other text with "@" is a uuid that a client chose. */
const LABELLED = /^([0-9a-f]{32})@(.+)$/s;

export const isShared = (value: string): boolean => value.startsWith(SHARED);

export function parseValue(value: string): EntryValue {
  const mode = isShared(value) ? 'shared' : 'exclusive';
  const rest = isShared(value) ? value.slice(SHARED.length) : value;
  const [, identity, last = rest] = IDENTIFIED.exec(rest) ?? [];
  const [, uuid = last, label] = LABELLED.exec(last) ?? [];
  return { mode, identity, label: label && decoded(label), uuid };
}

/** @param value its identity and label are well-formed Unicode and not empty */
export function formatValue({ mode, identity, label, uuid }: EntryValue): string {
  const prefix = `${mode === 'shared' ? SHARED : ''}${identity === undefined ? '' : `id:${identity}:`}`;
  return `${prefix}${uuid}${label === undefined ? '' : `@${encodeURIComponent(label)}`}`;
}

/** Returns the names of the client that made the entry, for people: its identity, its label and its uuid, if it has them. */
export function namesOf({ identity, label, uuid }: Omit<EntryValue, 'mode'>): readonly [string, ...string[]] {
  const [first = '(no value)', ...others] = [identity, label, uuid].flatMap((name) => name || []);
  return [first, ...others];
}

/** Decodes a label. One that another program has encoded differently is returned as it is. */
function decoded(label: string): string {
  try {
    return decodeURIComponent(label);
  } catch {
    return label;
  }
}
