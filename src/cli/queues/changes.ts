import { holdersAmong } from '../../recipe/rules.ts';
import type { LockQueue, ParsedEntry, QueueChange } from '../../recipe/survey.ts';

/**
 * What happened to an entry. A removed holder is `released`, a removed waiter is `left`. `gone`: removed or expired, while events
 * were missed. `re-created`: created again under its old key, as by a late renewal of python-etcd.
 */
export type EventKind =
  | 'queued'
  | 'acquired'
  | 'released'
  | 'left'
  | 'expired'
  | 'gone'
  | 're-created'
  | 'changed'
  | 'wiped';

export interface QueueEvent {
  readonly kind: EventKind;
  readonly entry: ParsedEntry;
}

type Entries = LockQueue['entries'];

interface EventKinds {
  /** Kind for added entries; default: `queued`. */
  readonly added?: EventKind;
  /** Kind for removed entries; default: `gone`. */
  readonly removed?: (entry: ParsedEntry) => EventKind;
}

/** Returns the events that lead from one state of a queue to another. Renewals are not events. */
export function diff(
  before: Entries,
  after: Entries,
  { added = 'queued', removed = () => 'gone' }: EventKinds = {},
): QueueEvent[] {
  const [old, current] = [byId(before), byId(after)];
  const [held, holders] = [byId(holdersAmong(before)), holdersAmong(after)];
  const rewritten = after.filter((entry) => (old.get(idOf(entry))?.value ?? entry.value) !== entry.value);
  return [
    ...before.filter((entry) => !current.has(idOf(entry))).map((entry) => ({ kind: removed(entry), entry })),
    ...after.filter((entry) => !old.has(idOf(entry))).map((entry) => ({ kind: added, entry })),
    ...rewritten.map((entry): QueueEvent => ({ kind: entry.value === '' ? 'wiped' : 'changed', entry })),
    ...holders.filter((entry) => !held.has(idOf(entry))).map((entry): QueueEvent => ({ kind: 'acquired', entry })),
  ];
}

/** Returns the events of one change. */
export function eventsOf(before: Entries, { how, entries }: QueueChange): QueueEvent[] {
  if (how === 'expired') return diff(before, entries, { removed: () => 'expired' });
  const holders = byId(holdersAmong(before));
  const removed = (entry: ParsedEntry): EventKind => (holders.has(idOf(entry)) ? 'released' : 'left');
  return diff(before, entries, { added: how === 're-created' ? how : 'queued', removed });
}

/** On etcd v3, entries of one client may have the same key, one after the other. */
const idOf = ({ key, rank }: ParsedEntry): string => `${rank} ${key}`;

const byId = (entries: Entries): ReadonlyMap<string, ParsedEntry> =>
  new Map(entries.map((entry) => [idOf(entry), entry]));
