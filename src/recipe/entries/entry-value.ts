/** How a lock is held: alone, or beside others that share it. */
export type LockMode = 'exclusive' | 'shared';

/** With which other entries an entry may hold the lock. */
export interface Claim {
  /** Whether the entry shares the lock with all other shared entries. */
  readonly mode: LockMode;
  /**
   * How many entries may hold the lock at the same time, if they all have this limit. undefined: the entry has no limit, and never
   * holds the lock together with one that has.
   */
  readonly limit: number | undefined;
}

/**
 * The parts of an entry's value, `[shared:|limit:<limit>:][id:<identity>:]<uuid>[@<label>]`. Entries of python-etcd and of `Lock`
 * have only a uuid as value, so they are exclusive.
 *
 * The label is percent-encoded, so the value has no ":" after the uuid. Versions of this package without labels therefore read the
 * same mode and identity from it. Versions without limits take an entry that has one for an exclusive entry.
 */
export interface EntryValue extends Claim {
  /** Names the process across restarts: an entry of an earlier process with the same identity may be evicted. */
  readonly identity: string | undefined;
  /** Says who made the entry, for people. No rule depends on it. */
  readonly label: string | undefined;
  /** Identifies the hold or the wait that made the entry. */
  readonly uuid: string;
}

const SHARED = 'shared:';
const LIMITED = /^limit:([1-9]\d{0,3}):(?=.)/s;
const IDENTIFIED = /^id:(.+):([^:]+)$/s;
/** Only a uuid made by this package has a label: any other text with "@" is a uuid that a client chose. */
const LABELLED = /^([0-9a-f]{32})@(.+)$/s;

export const isShared = (value: string): boolean => value.startsWith(SHARED);

const ALONE: Claim = { mode: 'exclusive', limit: undefined };
const SHARING: Claim = { mode: 'shared', limit: undefined };

/** Whether an entry with this claim never holds the lock together with others. */
export const isAlone = ({ mode, limit }: Claim): boolean => mode === 'exclusive' && limit === undefined;

export function claimOf(value: string): Claim {
  if (isShared(value)) return SHARING;
  const limit = LIMITED.exec(value)?.[1];
  return limit === undefined ? ALONE : { mode: 'exclusive', limit: Number(limit) };
}

export function parseValue(value: string): EntryValue {
  const claim = claimOf(value);
  const rest = value.slice(prefixOf(claim).length);
  const [, identity, last = rest] = IDENTIFIED.exec(rest) ?? [];
  const [, uuid = last, label] = LABELLED.exec(last) ?? [];
  return { ...claim, identity, label: label && decoded(label), uuid };
}

/** @param value its identity and label are well-formed Unicode and not empty */
export function formatValue({ identity, label, uuid, ...claim }: EntryValue): string {
  const prefix = `${prefixOf(claim)}${identity === undefined ? '' : `id:${identity}:`}`;
  return `${prefix}${uuid}${label === undefined ? '' : `@${encodeURIComponent(label)}`}`;
}

const prefixOf = ({ mode, limit }: Claim): string =>
  mode === 'shared' ? SHARED : limit === undefined ? '' : `limit:${limit}:`;

/** Returns `exclusive`, `shared` or `limit <n>`, for people. */
export const claimText = ({ mode, limit }: Claim): string => (limit === undefined ? mode : `limit ${limit}`);

/** Returns the names of the client that made the entry, for people: its identity, its label and its uuid, if it has them. */
export function namesOf({ identity, label, uuid }: Omit<EntryValue, keyof Claim>): readonly [string, ...string[]] {
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
