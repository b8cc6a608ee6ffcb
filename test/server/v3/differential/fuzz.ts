import fc from 'fast-check';
import { authSequences, runAuth } from './auth-sequence.ts';
import { compareFirstRequests } from './first-requests.ts';
import { level, openPair, type Pair, type PairOptions } from './pair.ts';
import { close, finish, type Model, sequences } from './sequence.ts';

/** What is sent by a run. */
export interface Sent {
  readonly sequences: number;
  /** Number of requests to each server whose answers were compared. */
  readonly requests: number;
}

/** Milliseconds of a search for shorter sequences that fail as well. */
const LONGEST_SEARCH = 60_000;

/**
 * Sends random requests to a fresh etcd and to a fresh embedded server, and expects the same answers. A failure shows the seed, the path
 * and the shortest sequence that fails: `fc.assert` repeats it with these as its options.
 */
export async function fuzz(seed: number, count: number, options: PairOptions): Promise<Sent> {
  return run(seed, count, options, sequences, async (steps, pair) => {
    const revision = await level(pair);
    const model: Model = { revision, compacted: revision, streams: [], requests: 0 };
    try {
      await fc.asyncModelRun(() => ({ model, real: pair }), steps);
      await finish(model, pair);
    } finally {
      close(model);
    }
    return model.requests;
  });
}

const FOR_USERS = [
  // Otherwise etcd takes a tenth of a second for each password.
  '--bcrypt-cost=4',
  // Otherwise etcd 3.5 sometimes accepts the password before the last one, until the next commit to disk (6 of 60 tries).
  '--backend-batch-limit=1',
];

/** As {@link fuzz}, with requests about users and roles, and by users. */
export async function fuzzAuth(seed: number, count: number, options: PairOptions): Promise<Sent> {
  return run(seed, count, { ...options, args: FOR_USERS }, authSequences, runAuth);
}

/** @param runOne runs a sequence, and returns its number of requests */
async function run<T>(
  seed: number,
  count: number,
  options: PairOptions,
  of: fc.Arbitrary<T>,
  runOne: (sequence: T, pair: Pair) => Promise<number>,
): Promise<Sent> {
  const pair = await openPair(options);
  let requests = 0;
  let searchEnds = Number.POSITIVE_INFINITY;
  try {
    await compareFirstRequests(pair);
    await fc.assert(
      fc.asyncProperty(of, async (sequence) => {
        // That all others pass ends the search. A limit of fast-check's own would cut off runs without a failure, on a slow machine.
        if (Date.now() > searchEnds) return;
        try {
          requests += await runOne(sequence, pair);
        } catch (error) {
          searchEnds = Math.min(searchEnds, Date.now() + LONGEST_SEARCH);
          throw error;
        }
      }),
      { seed, numRuns: count },
    );
  } finally {
    await pair.close();
  }
  return { sequences: count, requests };
}
