import { clientValue } from './bridged-value.ts';

/**
 * How a lock is held. `'exclusive'`: alone, or with a `limit` together with others that have the same limit. `'shared'`: together with all
 * other shared holders.
 */
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
 * The parts of an entry's value, `[shared:|limit:<limit>:][id:<identity>:]<uuid>[@<label>[@<published>]]`. Entries of python-etcd and
 * of `Lock` have only a uuid as value, so they are exclusive. The published text of a candidate in an election is read by
 * {@link publishedIn}.
 *
 * The label and the published text are percent-encoded, so the value has no ":" after the uuid. Older versions
 * of this package, which know no labels, read the same mode and identity from it. The label may be empty only before a published text.
 * Versions that know no limits treat an entry with a limit as exclusive.
 */
export interface EntryValue extends Claim {
  /** Names the process across restarts: an entry of an earlier process with the same identity may be evicted. */
  readonly identity: string | undefined;
  /** Says who made the entry, for people. No rule depends on it. */
  readonly label: string | undefined;
  /** Identifies the hold or the wait that made the entry. */
  readonly uuid: string;
}

/** The parts of the value of an entry that may be a candidate in an election. */
export interface CandidateValue extends EntryValue {
  /** What the candidate publishes while it leads. */
  readonly published?: string | undefined;
}

const SHARED = 'shared:';
const LIMITED = /^limit:([1-9]\d{0,3}):(?=.)/s;
const IDENTIFIED = /^id:(.+):([^:]+)$/s;
/** Only a uuid made by this package has a label: any other text with "@" is a uuid that a client chose. */
const LABELLED = /^([0-9a-f]{32})@(.+)$/s;
/** Two percent-encoded texts: any other text with "@" is a label that another program has encoded differently. */
const PUBLISHED = /^([\w.!~*'()%-]*)@([\w.!~*'()%-]+)$/;

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

/** Returns the value that the entry would have without its limit. */
export const withoutLimit = (value: string): string => value.replace(LIMITED, '');

export function parseValue(value: string): EntryValue {
  const { published: _, ...parts } = parsed(value);
  return parts;
}

/** Returns what the candidate that made the entry publishes while it leads; undefined if that is nothing. */
export const publishedIn = (value: string): string | undefined => parsed(value).published;

function parsed(value: string): CandidateValue {
  const claim = claimOf(value);
  const rest = value.slice(prefixOf(claim).length);
  const [, identity, last = rest] = IDENTIFIED.exec(rest) ?? [];
  const [, uuid = last, texts = ''] = LABELLED.exec(last) ?? [];
  const written = clientValue(texts);
  const [, label = written, published] = PUBLISHED.exec(written) ?? [];
  // What a bridge has added is shown as the end of the label.
  const shown = label + texts.slice(written.length);
  return { ...claim, identity, label: decoded(shown), uuid, published: decoded(published) };
}

/** @param parts the identity, the label and the published text are well-formed Unicode and not empty */
export function formatValue(parts: Omit<CandidateValue, 'uuid'>, uuid: string): string {
  const { identity, label, published } = parts;
  const own = `${prefixOf(parts)}${identity === undefined ? '' : `id:${identity}:`}${uuid}`;
  if (published !== undefined) return `${own}@${encodeURIComponent(label ?? '')}@${encodeURIComponent(published)}`;
  return label === undefined ? own : `${own}@${encodeURIComponent(label)}`;
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

/** Decodes a text. Returns a text that another program has encoded differently as it is, and undefined for an empty text. */
function decoded(text = ''): string | undefined {
  try {
    return decodeURIComponent(text) || undefined;
  } catch {
    return text;
  }
}
