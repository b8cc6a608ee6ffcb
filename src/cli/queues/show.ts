import { ageOf, type ParsedEntry } from '../../v2/locks/survey.ts';

/** An entry for programs; what it does not have is null. */
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

/** Who queued it, in short. */
export const ownerOf = ({ identity, uuid }: Pick<ParsedEntry, 'identity' | 'uuid'>): string =>
  (identity ?? uuid) || '(no value)';

/** Who queued it: its identity, if it has one, and its uuid. */
export const fullOwnerOf = (entry: ParsedEntry): string =>
  entry.identity === undefined ? ownerOf(entry) : `${ownerOf(entry)} (${entry.uuid})`;

export const ttlText = (ttl: number | undefined): string => (ttl === undefined ? 'never expires' : `${ttl} s left`);

/** An entry in one line. */
export const describe = (entry: ParsedEntry): string =>
  `${entry.key}: ${entry.mode}, ${fullOwnerOf(entry)}, ${ttlText(entry.ttl)}`;

export const ageText = (entry: ParsedEntry, index: number): string => String(ageOf(entry, index) ?? '-');

/** For the help of commands that show ages. */
export const ABOUT_AGE = `AGE is how many changes of the whole store ago the entry was queued, by the number in its key (as of etcd 2.2).`;

/** For the help of commands that show whose an entry is. */
export const ABOUT_OWNERS = `A python-etcd lock is exclusive and has a uuid alone. So has one of this package that neither shares nor has an
identity: etcd cannot tell the two apart.`;
