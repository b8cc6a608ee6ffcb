import fc from 'fast-check';
import type { FaultKind } from './history.ts';

export type TrackName = 'members' | 'network' | 'contenders' | 'bridges';

/** One planned fault of the cluster, the network or a contender. */
export interface Planned {
  /** Faults on one track do not overlap. */
  readonly track: TrackName;
  /** Milliseconds from the start of the campaign. */
  readonly at: number;
  readonly kind: FaultKind;
  /** Chooses one of the candidates, modulo their number; ignored if the kind names the leader or the holder. */
  readonly target: number;
  /** Duration in milliseconds. */
  readonly lasting: number;
}

/** Faults that do not overlap, so that the cluster mostly keeps a quorum. */
interface Track {
  /** Milliseconds between two faults. */
  readonly pause: readonly [least: number, most: number];
  /** The duration of each kind in milliseconds, and its weight in the random choice. */
  readonly kinds: readonly (readonly [kind: FaultKind, least: number, most: number, weight: number])[];
}

const TRACKS: Readonly<Record<TrackName, Track>> = {
  members: {
    pause: [2000, 6000],
    kinds: [
      ['member killed', 500, 6000, 2],
      ['leader killed', 500, 6000, 2],
      ['member paused', 500, 8000, 2],
      ['leader paused', 500, 8000, 2],
      ['quorum paused', 500, 3000, 2],
      ['quorum paused', 6000, 9000, 1],
      ['member isolated', 1000, 8000, 1],
      ['leader isolated', 1000, 8000, 1],
    ],
  },
  network: {
    pause: [1000, 6000],
    kinds: [
      ['connections cut', 0, 0, 3],
      ['connections refused', 500, 4000, 1],
      ['requests lost', 500, 8000, 1],
      ['answers lost', 500, 8000, 1],
      ['both ways lost', 500, 8000, 1],
      ['network slow', 1000, 5000, 1],
      ['answer swallowed', 3000, 3000, 3],
    ],
  },
  contenders: {
    pause: [3000, 8000],
    kinds: [
      ['contender stopped', 300, 3000, 2],
      ['contender stopped', 6000, 9000, 1],
      ['contender killed', 0, 0, 2],
      ['holder stopped', 300, 3000, 1],
      ['holder stopped', 6000, 9000, 2],
      ['holder killed', 0, 0, 1],
    ],
  },
  bridges: {
    pause: [2000, 6000],
    kinds: [
      ['bridge killed', 500, 6000, 2],
      ['bridge stopped', 500, 4000, 2],
      ['bridge stopped', 6000, 12_000, 1],
    ],
  },
};

/**
 * Returns the faults of that many seconds in order; the same seed gives the same faults.
 * @param bridged whether to plan faults of bridges, too. They do not change the others.
 */
export function schedule(seed: number, seconds: number, bridged = false): Planned[] {
  const end = seconds * 1000;
  const tracks = fc.tuple(planned('members', end), planned('network', end), planned('contenders', end));
  const [plan = []] = fc.sample(tracks, { seed, numRuns: 1, unbiased: true });
  const ofBridges = bridged ? fc.sample(planned('bridges', end), { seed, numRuns: 1, unbiased: true }) : [];
  return [...plan, ...ofBridges].flat().sort((a, b) => a.at - b.at);
}

/** The faults of one track, which all begin and end before `end`. */
function planned(track: TrackName, end: number): fc.Arbitrary<Planned[]> {
  const {
    pause: [least, most],
    kinds,
  } = TRACKS[track];
  const one = fc.oneof(
    ...kinds.map(([kind, shortest, longest, weight]) => ({
      weight,
      arbitrary: fc.record({
        kind: fc.constant(kind),
        target: fc.nat(11),
        lasting: fc.integer({ min: shortest, max: longest }),
        pause: fc.integer({ min: least, max: most }),
      }),
    })),
  );
  const enough = Math.ceil(end / least);
  return fc.array(one, { minLength: enough, maxLength: enough }).map((draws) => {
    let at = 0;
    return draws.flatMap(({ pause, ...fault }) => {
      const begin = at + pause;
      at = begin + fault.lasting;
      return at > end ? [] : { ...fault, track, at: begin };
    });
  });
}
