import { SEARCH_APPEND_FOR } from '../../recipe/entries/timing.ts';
import type { Entry } from '../../recipe/store.ts';
import { READ_EVERY } from './timing.ts';

type Key = Pick<Entry, 'key' | 'rank'>;

/**
 * Counts appends whose outcome is unknown: each append sent counts until it is answered or its key is seen. etcd may never carry it
 * out, so all are forgotten after a search of {@link SEARCH_APPEND_FOR}. The search begins with the first read by quorum after the last of
 * them: a member may carry out an append after an outage. A longer pause between two reads, such as a hold, does not count.
 */
export interface UnclearAppends {
  readonly count: number;
  /** Keys up to this rank existed before these appends. A stale listing may still show them. */
  readonly floor: bigint;
  /** Keys that exist before the next append have at most this rank. */
  readonly highest: bigint;
  /** Keys of which it is known that an append has created them. */
  readonly counted: ReadonlySet<string>;
  /** Milliseconds of the search. */
  readonly searched: number;
  /** When the search last read; undefined before its first read. */
  readonly readAt: number | undefined;
}

export const NO_APPENDS: UnclearAppends = {
  count: 0,
  floor: -1n,
  highest: -1n,
  counted: new Set(),
  searched: 0,
  readAt: undefined,
};

/** An append is sent. @param last the last own entry before that append */
export function sent(appends: UnclearAppends, last: Key | undefined): UnclearAppends {
  const noted = note(appends, last?.rank);
  return { ...noted, count: noted.count + 1, floor: noted.count > 0 ? noted.floor : noted.highest };
}

/** The outcome of an append is known. @param made the key that it created; undefined if none */
export function answered(appends: UnclearAppends, made?: Key): UnclearAppends {
  return oneLess(note(appends, made?.rank), made);
}

/** The outcome of an append is unknown. */
export const lost = (appends: UnclearAppends): UnclearAppends => ({ ...appends, searched: 0, readAt: undefined });

/** A key with the ticket's value has been found. Counts each key once. */
export function seen(appends: UnclearAppends, made: Key): UnclearAppends {
  const noted = note(appends, made.rank);
  const isCounted = made.rank <= noted.floor || noted.counted.has(made.key);
  return isCounted ? noted : oneLess(noted, made);
}

/**
 * What a read by quorum has shown is dealt with.
 * @param index index of the store at that read: keys of later appends have greater ranks
 * @param at time of that read: milliseconds on the monotonic clock
 */
export function searched(appends: UnclearAppends, index: number, at: number): UnclearAppends {
  const noted = note(appends, BigInt(index));
  const pause = Math.min(at - (noted.readAt ?? at), READ_EVERY * 1000);
  const total = noted.searched + pause;
  return noted.count === 0 || total >= SEARCH_APPEND_FOR * 1000
    ? forgotten(noted)
    : { ...noted, searched: total, readAt: at };
}

/** Adds the appends of another ticket with the same value. */
export function joined(appends: UnclearAppends, other: UnclearAppends): UnclearAppends {
  const noted = note(appends, other.highest);
  if (other.count === 0) return noted;
  const isFirst = noted.count === 0;
  return {
    ...noted,
    count: noted.count + other.count,
    floor: isFirst || other.floor < noted.floor ? other.floor : noted.floor,
    counted: new Set([...noted.counted, ...other.counted]),
    searched: isFirst ? other.searched : Math.min(noted.searched, other.searched),
    readAt: other.readAt,
  };
}

const note = (appends: UnclearAppends, rank = -1n): UnclearAppends =>
  rank > appends.highest ? { ...appends, highest: rank } : appends;

const oneLess = (appends: UnclearAppends, made: Key | undefined): UnclearAppends =>
  appends.count <= 1
    ? forgotten(appends)
    : {
        ...appends,
        count: appends.count - 1,
        counted: made ? new Set([...appends.counted, made.key]) : appends.counted,
      };

const forgotten = ({ highest }: UnclearAppends): UnclearAppends => ({ ...NO_APPENDS, highest });
