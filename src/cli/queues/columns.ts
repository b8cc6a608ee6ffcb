/** The columns of the commands that show entries. */
import { claimText } from '../../recipe/entries/entry-value.ts';
import { holdersAmong } from '../../recipe/rules.ts';
import { changesSince, type LockQueue, lastPart, type ParsedEntry } from '../../recipe/survey.ts';
import type { Column } from '../table.ts';
import { fullOwnerOf, ownerOf, ttlText } from './show.ts';

const MODE = { heading: 'MODE', about: '"exclusive", "shared", or "limit" with the maximum number of holders' };
const TTL = { heading: 'TTL', about: 'seconds until the entry expires, unless renewed' };
const CHANGES_AGO = {
  heading: 'CHANGES AGO',
  about: 'number of changes to any etcd key since the entry was queued (etcd 2.2 or later)',
};

const ttlCell = (ttl = Number.POSITIVE_INFINITY): string => (ttl === Number.POSITIVE_INFINITY ? 'never' : String(ttl));

const changesCell = (entry: ParsedEntry, index: number): string => String(changesSince(entry, index) ?? '-');

/** A held lock in `ls`. */
export interface LockRow {
  readonly queue: LockQueue;
  readonly holders: readonly ParsedEntry[];
  readonly first: ParsedEntry;
  readonly index: number;
}

/** Returns the rows of the locks that are held. */
export const lockRows = (queues: readonly LockQueue[], index: number): LockRow[] =>
  queues.flatMap((queue) => {
    const holders = holdersAmong(queue.entries);
    const [first] = holders;
    return first ? { queue, holders, first, index } : [];
  });

export const lockColumns: readonly Column<LockRow>[] = [
  { heading: 'NAME', about: 'name of the lock', cell: ({ queue }) => queue.name, yields: 3 },
  {
    heading: 'HOLDER',
    about: 'identity of the first holder, or else its label, or else its uuid',
    cell: ({ first, holders }) => ownerOf(first) + (holders.length === 1 ? '' : ` and ${holders.length - 1} more`),
    yields: 2,
  },
  { ...MODE, cell: ({ first }) => claimText(first) },
  {
    heading: 'WAITERS',
    about: 'number of waiters',
    cell: ({ queue, holders }) => String(queue.entries.length - holders.length),
  },
  {
    ...TTL,
    about: `${TTL.about} (the maximum of all holders)`,
    cell: ({ holders }) =>
      ttlCell(holders.reduce((most, { ttl = Number.POSITIVE_INFINITY }) => Math.max(most, ttl), 0)),
  },
  { ...CHANGES_AGO, cell: ({ first, index }) => changesCell(first, index), yields: 1 },
];

/** An entry in `inspect`. */
export interface EntryRow {
  readonly entry: ParsedEntry;
  readonly position: number;
  readonly state: string;
  readonly index: number;
}

export const entryColumns: readonly Column<EntryRow>[] = [
  { heading: '#', about: 'position in the queue', cell: ({ position }) => String(position) },
  {
    heading: 'STATE',
    about: '"holds" or "waits"; several entries that are shared or have a limit can hold the lock together',
    cell: ({ state }) => state,
  },
  { ...MODE, cell: ({ entry }) => claimText(entry) },
  {
    heading: 'IDENTITY',
    about: 'identity of the client that added the entry, or "-"',
    cell: ({ entry }) => entry.identity ?? '-',
    yields: 5,
  },
  {
    heading: 'LABEL',
    about: 'label of the client, by default its host name and process ID, or "-"',
    cell: ({ entry }) => entry.label ?? '-',
    yields: 4,
  },
  {
    heading: 'UUID',
    about: 'uuid of the entry; "(no value)" for an entry of Go or Java',
    cell: ({ entry }) => entry.uuid || '(no value)',
    yields: 3,
  },
  { ...TTL, cell: ({ entry }) => ttlCell(entry.ttl) },
  { ...CHANGES_AGO, cell: ({ entry, index }) => changesCell(entry, index), yields: 1 },
  { heading: 'KEY', about: 'etcd key of the entry', cell: ({ entry }) => entry.key, yields: 2, keeps: 'end' },
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
