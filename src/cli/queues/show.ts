import { type Claim, claimText, type EntryValue, namesOf, publishedIn } from '../../recipe/entries/entry-value.ts';
import { madeAt } from '../../recipe/entries/uuid.ts';
import { changesSince, type ParsedEntry } from '../../recipe/survey.ts';

/** An entry as printed with `--json`; missing values are null, a missing uuid is empty. */
export interface EntryJson {
  readonly name: string;
  readonly key: string;
  readonly mode: string;
  readonly limit: number | null;
  readonly identity: string | null;
  readonly label: string | null;
  readonly uuid: string;
  /** What the entry's client publishes while it leads an election. */
  readonly value: string | null;
  readonly ttl: number | null;
  /** Number of changes to any etcd key since the entry was queued. */
  readonly changesAgo: number | null;
  /** When the entry was added, by the clock of its client; null if it does not say that. */
  readonly queuedAt: Date | null;
}

export function entryJson(entry: ParsedEntry, index: number): EntryJson {
  const { name, key, mode, limit = null, identity = null, label = null, uuid, ttl = null } = entry;
  const value = publishedIn(entry.value) ?? null;
  const changesAgo = changesSince(entry, index) ?? null;
  return { name, key, mode, limit, identity, label, uuid, value, ttl, changesAgo, queuedAt: madeAt(uuid) ?? null };
}

/** Returns the name under which the output shows the client of an entry: the identity, else the label, else the uuid. */
export const ownerOf = (entry: Omit<EntryValue, keyof Claim>): string => namesOf(entry)[0];

/** Returns the names of the client of an entry: the identity and the label, if any, and the uuid. */
export function fullOwnerOf(entry: ParsedEntry): string {
  const [first, ...others] = namesOf(entry);
  return others.length === 0 ? first : `${first} (${others.join(', ')})`;
}

export const ttlText = (ttl: number | undefined): string => (ttl === undefined ? 'never expires' : `${ttl} s left`);

/** Returns an entry as one line of text. */
export const describe = (entry: ParsedEntry): string =>
  `${entry.key}: ${claimText(entry)}, ${fullOwnerOf(entry)}, ${ttlText(entry.ttl)}`;

/** Help text for commands that show entries. */
export const ABOUT_PYTHON_ETCD = `Entries of python-etcd are exclusive and have a uuid, but no identity and no label. Exclusive entries of this package
without identity and label look the same as those of python-etcd.`;
