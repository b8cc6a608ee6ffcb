/** The columns of the commands that show entries. */
import { printable } from '../../base/printable.ts';
import { claimText } from '../../recipe/entries/entry-value.ts';
import { holdersAmong } from '../../recipe/rules.ts';
import { type LockQueue, lastPart, type ParsedEntry } from '../../recipe/survey.ts';
import type { Column } from '../table.ts';
import { type Durations, durationText, longest } from './durations.ts';
import { fullOwnerOf, ownerOf, ttlText } from './show.ts';

const MODE = { heading: 'MODE', about: '"exclusive", "shared", or "limit" with the maximum number of holders' };
const TTL = { heading: 'TTL', about: 'seconds until the entry expires, unless renewed' };

/** Help text for the columns that show how long an entry is in the queue. */
export const ABOUT_TIMES = `etcd does not keep when an entry was added. The entries of a LockManager say it, by the clock of its host. Those of other
clients, of the class Lock and of earlier versions do not: their times are "unknown". etcd does not keep either when a holder has
acquired the lock. So "≤5m" means: it was queued five minutes ago, and may have acquired the lock at any time since.`;

const ttlCell = (ttl = Number.POSITIVE_INFINITY): string => (ttl === Number.POSITIVE_INFINITY ? 'never' : String(ttl));

const heldCell = (seconds: number | undefined): string =>
  seconds === undefined ? UNKNOWN : `≤${durationText(seconds)}`;
const waitedCell = (seconds: number | undefined): string => (seconds === undefined ? UNKNOWN : durationText(seconds));
const UNKNOWN = 'unknown';

/** A held lock in `ls`. */
export interface LockRow {
  readonly queue: LockQueue;
  readonly holders: readonly ParsedEntry[];
  readonly first: ParsedEntry;
  readonly queuedFor: Durations;
}

/** Returns the rows of the locks that are held. */
export const lockRows = (queues: readonly LockQueue[], queuedFor: Durations): LockRow[] =>
  queues.flatMap((queue) => {
    const holders = holdersAmong(queue.entries);
    const [first] = holders;
    return first ? { queue, holders, first, queuedFor } : [];
  });

export const lockColumns: readonly Column<LockRow>[] = [
  { heading: 'NAME', about: 'name of the lock', cell: ({ queue }) => queue.name, yields: 5, last: true },
  {
    heading: 'HOLDER',
    about: 'identity of the first holder, or else its label, or else its uuid',
    cell: ({ first, holders }) => ownerOf(first) + (holders.length === 1 ? '' : ` and ${holders.length - 1} more`),
    yields: 4,
  },
  { ...MODE, cell: ({ first }) => claimText(first), yields: 1 },
  {
    heading: 'HELD FOR',
    about: 'for how long the first holder has held the lock, at most; or "unknown"',
    cell: ({ first, queuedFor }) => heldCell(queuedFor(first)),
    yields: 3,
  },
  {
    heading: 'WAITERS',
    about: 'number of waiters',
    cell: ({ queue, holders }) => String(queue.entries.length - holders.length),
  },
  {
    heading: 'WAITING FOR',
    about: 'the longest wait that is known; or "unknown", or "-" without waiters',
    cell: ({ queue: { entries }, holders, queuedFor }) =>
      entries.length === holders.length ? '-' : waitedCell(longest(entries.slice(holders.length).map(queuedFor))),
    yields: 2,
  },
  {
    ...TTL,
    about: `${TTL.about} (the maximum of all holders)`,
    cell: ({ holders }) =>
      ttlCell(holders.reduce((most, { ttl = Number.POSITIVE_INFINITY }) => Math.max(most, ttl), 0)),
  },
];

/** An entry in `inspect`. */
export interface EntryRow {
  readonly entry: ParsedEntry;
  readonly position: number;
  readonly isHolder: boolean;
  /** The key, or as much of its end as no other key of the queue has. */
  readonly key: string;
  readonly queuedFor: number | undefined;
}

/** Minimum number of characters of a shortened key. */
const SHORTEST_KEY = 8;

/**
 * Returns the rows of a queue.
 * @param shortens whether the keys are shortened, to what `release --key` accepts
 */
export function entryRows(entries: readonly ParsedEntry[], queuedFor: Durations, shortens: boolean): EntryRow[] {
  const holders = holdersAmong(entries).length;
  const keys = entries.map(({ key }) => key);
  const shown = shortens ? uniqueEnds(keys.map((key) => printable(lastPart(key)))) : keys;
  return entries.map((entry, at) => ({
    entry,
    position: at + 1,
    isHolder: at < holders,
    key: shown[at] ?? '',
    queuedFor: queuedFor(entry),
  }));
}

/** Returns the shortest ends of the texts, all of the same length, that differ from one another. */
function uniqueEnds(texts: readonly string[]): readonly string[] {
  // Not by code units: half a surrogate pair is not printable.
  const characters = texts.map((text) => [...text]);
  const most = characters.reduce((longest, { length }) => Math.max(longest, length), 0);
  for (let length = SHORTEST_KEY; length < most; length += 1) {
    const ends = characters.map((text) => text.slice(-length).join(''));
    if (new Set(ends).size === texts.length) return ends;
  }
  return texts;
}

export const stateOf = ({ isHolder }: Pick<EntryRow, 'isHolder'>): string => (isHolder ? 'holds' : 'waits');

export const entryColumns: readonly Column<EntryRow>[] = [
  { heading: '#', about: 'position in the queue', cell: ({ position }) => String(position) },
  {
    heading: 'STATE',
    about: '"holds" or "waits"; several entries that are shared or have a limit can hold the lock together',
    cell: stateOf,
  },
  {
    heading: 'FOR',
    about: 'for how long the entry waits, or holds the lock at most ("≤"); or "unknown"',
    cell: ({ isHolder, queuedFor }) => (isHolder ? heldCell : waitedCell)(queuedFor),
  },
  { ...MODE, cell: ({ entry }) => claimText(entry) },
  {
    heading: 'IDENTITY',
    about: 'identity of the client that added the entry, or "-"',
    cell: ({ entry }) => entry.identity ?? '-',
    yields: 3,
  },
  {
    heading: 'LABEL',
    about: 'label of the client, by default its host name and process ID, or "-"',
    cell: ({ entry }) => entry.label ?? '-',
    yields: 2,
  },
  {
    heading: 'UUID',
    about: 'uuid of the entry; "(no value)" for an entry of Go or Java',
    cell: ({ entry }) => entry.uuid || '(no value)',
    yields: 1,
  },
  { ...TTL, cell: ({ entry }) => ttlCell(entry.ttl) },
  {
    heading: 'KEY',
    about: 'etcd key of the entry. On a terminal: its end, as far as it is unique in this queue',
    cell: ({ key }) => key,
  },
];

/** An event in `watch`. */
export interface EventRow {
  /** Local time. */
  readonly time: string;
  readonly index: number;
  readonly event: string;
  readonly entry: ParsedEntry;
}

/** Events after which an entry has no TTL. */
const ENDED = new Set(['released', 'left', 'expired', 'gone']);

export const eventColumns: readonly Column<EventRow>[] = [
  { heading: 'TIME', about: 'local time', cell: ({ time }) => time },
  { heading: 'INDEX', about: 'etcd index', cell: ({ index }) => String(index), yields: 1 },
  { heading: 'EVENT', about: 'what happened', cell: ({ event }) => event.padEnd(10) },
  {
    heading: 'KEY',
    about: 'last part of the key of the entry',
    cell: ({ entry }) => lastPart(entry.key),
    yields: 3,
    keeps: 'end',
  },
  { ...MODE, cell: ({ entry }) => claimText(entry), yields: 2 },
  {
    heading: 'CLIENT',
    about:
      'identity and label of the client that added the entry, if it has them, and uuid; "(no value)" for an entry of Go or Java',
    cell: ({ entry }) => fullOwnerOf(entry),
    yields: 4,
  },
  {
    ...TTL,
    cell: ({ entry, event }) => (ENDED.has(event) ? '' : ttlText(entry.ttl)),
  },
];
