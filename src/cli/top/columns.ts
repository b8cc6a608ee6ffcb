/** The columns of `top`, and what they say of times that nobody has seen. */
import { claimText } from '../../recipe/entries/entry-value.ts';
import { type LiveEntry, type LiveLock, longestWaiter, waitsFor } from '../live/model.ts';
import { durationText, timeOfDay } from '../queues/durations.ts';
import { fullOwnerOf, ownerOf } from '../queues/show.ts';
import type { Column } from '../table.ts';

/** A lock at a time, in milliseconds since the epoch. */
export interface LockAt {
  readonly lock: LiveLock;
  readonly at: number;
}

export interface EntryAt extends LockAt {
  readonly live: LiveEntry;
  readonly position: number;
}

export const ABOUT_TOP_TIMES = `Times count from what top has seen: "5m". "≥5m" is an entry that was there before top started. "≤5m" is a holder that was
queued five minutes ago, and has acquired the lock at some time since. "?" is a TTL that no read has shown since the last
renewal. Of the locks on the screen, top reads five every two seconds.`;

const since = (from: number, at: number): string => durationText(Math.max(0, at - from) / 1000);

function heldFor({ heldAt, queuedAt, seenAt }: LiveEntry, at: number): string {
  if (heldAt !== undefined) return since(heldAt, at);
  return queuedAt === undefined ? `≥${since(seenAt, at)}` : `≤${since(queuedAt, at)}`;
}

const waitedFor = ({ queuedAt, seenAt }: LiveEntry, at: number): string =>
  queuedAt === undefined ? `≥${since(seenAt, at)}` : since(queuedAt, at);

/** Returns the seconds left, by the clock of this host. */
function ttlText({ ttl }: LiveEntry, at: number): string {
  if (!ttl) return '?';
  if (ttl.left === undefined) return 'never';
  const left = Math.ceil(ttl.left - (at - ttl.at) / 1000);
  return left > 0 ? String(left) : '?';
}

export const liveLockColumns: readonly Column<LockAt>[] = [
  { heading: 'NAME', about: 'name of the lock', cell: ({ lock }) => lock.name, yields: 5, last: true },
  {
    heading: 'HOLDER',
    about: 'identity of the first holder, or else its label, or else its uuid',
    cell: ({ lock: { holders } }) =>
      holders
        .slice(0, 1)
        .map(({ entry }) => ownerOf(entry) + (holders.length === 1 ? '' : ` and ${holders.length - 1} more`))
        .join(''),
    yields: 4,
  },
  {
    heading: 'KIND',
    about: 'program of the first holder: "this package", "python-etcd", "bridge", "Go" or "unknown"',
    cell: ({ lock }) => lock.holders[0]?.kind ?? '',
    yields: 1,
  },
  {
    heading: 'HELD FOR',
    about: 'for how long the first holder has held the lock',
    cell: ({ lock: { holders }, at }) => (holders[0] ? heldFor(holders[0], at) : ''),
    yields: 3,
  },
  { heading: 'WAITERS', about: 'number of waiters', cell: ({ lock }) => String(lock.waiters.length) },
  {
    heading: 'WAITING FOR',
    about: 'the longest wait',
    cell: ({ lock, at }) => {
      const waiter = longestWaiter(lock);
      return waiter ? waitedFor(waiter, at) : '-';
    },
    yields: 2,
  },
  {
    heading: 'TTL',
    about: 'seconds until the entry of the first holder expires, unless renewed',
    cell: ({ lock: { holders }, at }) => (holders[0] ? ttlText(holders[0], at) : ''),
  },
];

const isHolder = ({ lock, live }: EntryAt): boolean => lock.holders.includes(live);

export const liveEntryColumns: readonly Column<EntryAt>[] = [
  { heading: '#', about: 'position in the queue', cell: ({ position }) => String(position) },
  { heading: 'STATE', about: '"holds" or "waits"', cell: (row) => (isHolder(row) ? 'holds' : 'waits') },
  {
    heading: 'FOR',
    about: 'for how long it holds or waits',
    cell: (row) => (isHolder(row) ? heldFor : waitedFor)(row.live, row.at),
  },
  { heading: 'MODE', about: '"exclusive", "shared" or "limit"', cell: ({ live }) => claimText(live.entry), yields: 2 },
  {
    heading: 'CLIENT',
    about: 'identity and label of the client, if it has them, and uuid',
    cell: ({ live }) => fullOwnerOf(live.entry),
    yields: 5,
  },
  { heading: 'KIND', about: 'program of the client', cell: ({ live }) => live.kind, yields: 3 },
  {
    heading: 'WAITS FOR',
    about: 'the nearest entry that must go first; with a limit, also how many must go',
    cell: ({ lock, live }) => {
      const obstacle = waitsFor(lock, live);
      if (!obstacle) return '-';
      return ownerOf(obstacle.nearest) + (obstacle.count === 1 ? '' : ` or others: ${obstacle.count} must go`);
    },
    yields: 4,
  },
  {
    heading: 'TTL',
    about: 'seconds until the entry expires, unless renewed',
    cell: ({ live, at }) => ttlText(live, at),
  },
  {
    heading: 'RENEWED',
    about: 'when a renewal was last seen',
    cell: ({ live: { renewedAt } }) => (renewedAt === undefined ? '-' : timeOfDay(new Date(renewedAt))),
    yields: 1,
  },
];
