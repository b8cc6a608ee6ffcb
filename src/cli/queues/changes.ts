import { holdersAmong } from '../../recipe/rules.ts';
import type { KeyEvent } from '../../v2/keys-api.ts';
import { type LockQueue, type ParsedEntry, parsedEntriesAmong } from '../../v2/locks/survey.ts';

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

/** A lock and the directory of its queue. */
export interface LockDirectory {
  readonly name: string;
  readonly path: string;
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
  const [old, current] = [byKey(before), byKey(after)];
  const [held, holders] = [byKey(holdersAmong(before)), holdersAmong(after)];
  const rewritten = after.filter(({ key, value }) => (old.get(key)?.value ?? value) !== value);
  return [
    ...before.filter(({ key }) => !current.has(key)).map((entry) => ({ kind: removed(entry), entry })),
    ...after.filter(({ key }) => !old.has(key)).map((entry) => ({ kind: added, entry })),
    ...rewritten.map((entry): QueueEvent => ({ kind: entry.value === '' ? 'wiped' : 'changed', entry })),
    ...holders.filter(({ key }) => !held.has(key)).map((entry): QueueEvent => ({ kind: 'acquired', entry })),
  ];
}

/**
 * Returns the queue after a change in etcd, and the events of that change. Changes in the queues of other locks, in directories
 * below this one, have no effect.
 */
export function apply(
  { name, path }: LockDirectory,
  before: Entries,
  change: KeyEvent,
): { readonly entries: Entries; readonly events: readonly QueueEvent[] } {
  const { action, node } = change;
  const [changed] =
    node.key === `${path}${node.key.slice(node.key.lastIndexOf('/'))}` ? parsedEntriesAmong(name, [node]) : [];
  if (REMOVALS.has(action)) {
    // The removal of a directory removes everything in it.
    const entries = before.filter(({ key }) => key !== node.key && !key.startsWith(`${node.key}/`));
    const holders = byKey(holdersAmong(before));
    const left = ({ key }: ParsedEntry): EventKind => (holders.has(key) ? 'released' : 'left');
    return { entries, events: diff(before, entries, { removed: action === 'expire' ? () => 'expired' : left }) };
  }
  if (!changed) return { entries: before, events: [] };
  const others = before.filter(({ key }) => key !== changed.key);
  const entries = [...others, changed].sort((a, b) => (a.key < b.key ? -1 : 1));
  const added = action === 'set' && !change.prevNode ? 're-created' : 'queued';
  return { entries, events: diff(before, entries, { added }) };
}

const REMOVALS = new Set(['delete', 'compareAndDelete', 'expire']);

const byKey = (entries: Entries): ReadonlyMap<string, ParsedEntry> =>
  new Map(entries.map((entry) => [entry.key, entry]));
