import type { Event } from './history.ts';

/** One hold of the lock, from the moment its contender knew of it to the moment it knew of the end. */
export interface Hold {
  readonly who: string;
  readonly token: bigint;
  readonly shared: boolean;
  readonly from: number;
  /** Infinity when the history ends first. */
  readonly to: number;
}

/** Reads the holds out of a history, in the order they began. */
export function holdsIn(history: readonly Event[]): Hold[] {
  const ordered = history.toSorted((a, b) => a.at - b.at);
  return ordered.flatMap((event, i) => {
    if (event.kind !== 'held') return [];
    const end = ordered
      .slice(i + 1)
      .find(
        (later) =>
          (later.kind === 'lost' || later.kind === 'released') &&
          later.who === event.who &&
          later.token === event.token,
      );
    const { who, token, mode, at } = event;
    return [
      { who, token: BigInt(token), shared: mode === 'shared', from: at, to: end?.at ?? Number.POSITIVE_INFINITY },
    ];
  });
}
