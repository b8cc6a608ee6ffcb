import { ageOf, type ParsedEntry } from '../../v2/locks/survey.ts';

/** An entry as printed with `--json`; missing values are null. */
export interface EntryJson {
  readonly name: string;
  readonly key: string;
  readonly mode: string;
  readonly identity: string | null;
  readonly uuid: string;
  readonly ttl: number | null;
  readonly age: number | null;
}

export function entryJson(entry: ParsedEntry, index: number): EntryJson {
  const { name, key, mode, identity = null, uuid, ttl = null } = entry;
  return { name, key, mode, identity, uuid, ttl, age: ageOf(entry, index) ?? null };
}

/** Returns the name under which the output shows the client of an entry: the identity, or the uuid if there is no identity. */
export const ownerOf = ({ identity, uuid }: Pick<ParsedEntry, 'identity' | 'uuid'>): string =>
  (identity ?? uuid) || '(no value)';

/** Returns the identity of an entry, if any, and its uuid. */
export const fullOwnerOf = (entry: ParsedEntry): string =>
  entry.identity === undefined ? ownerOf(entry) : `${ownerOf(entry)} (${entry.uuid})`;

export const ttlText = (ttl: number | undefined): string => (ttl === undefined ? 'never expires' : `${ttl} s left`);

/** Returns an entry as one line of text. */
export const describe = (entry: ParsedEntry): string =>
  `${entry.key}: ${entry.mode}, ${fullOwnerOf(entry)}, ${ttlText(entry.ttl)}`;

export const ageText = (entry: ParsedEntry, index: number): string => String(ageOf(entry, index) ?? '-');

/** Help text for columns with the TTL. */
export const ABOUT_TTL = 'seconds until the entry expires, unless renewed';

/** Help text for columns with the age. */
export const ABOUT_AGE = 'number of changes to any etcd key since the entry was queued (etcd 2.2 or later)';

/** Help text for commands that show entries. */
export const ABOUT_PYTHON_ETCD = `Entries of python-etcd are exclusive and have a uuid, but no identity. Exclusive entries of this package without an
identity look the same.`;
