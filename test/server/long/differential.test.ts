import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import { type Both, level, openBoth } from '../differential/both.ts';
import { finish, type Model, sequences } from '../differential/sequence.ts';

const FIXED_SEED = 20_261_121;
const SEQUENCES = 400;

let both: Both;

beforeAll(async () => {
  both = await openBoth();
});

afterAll(() => both.close());

test.each([
  ['a fixed seed', FIXED_SEED],
  ['a fresh seed', Date.now() % 2 ** 31],
])(
  'random requests from %s get the same answers from etcd and from the embedded server',
  async (_, seed) => {
    let sequence = 0;
    let requests = 0;
    await fc.assert(
      fc.asyncProperty(sequences, async (steps) => {
        const model: Model = {
          dir: `/s${seed}-${sequence++}`,
          index: await level(both),
          changedAt: new Map(),
          inOrder: [],
          polls: [],
          requests: 0,
        };
        await fc.asyncModelRun(() => ({ model, real: both }), steps);
        await finish(model, both);
        requests += model.requests;
      }),
      { seed, numRuns: SEQUENCES },
    );
    // biome-ignore lint/suspicious/noConsole: the seed reproduces a failure; the count shows what a success covers.
    console.info(`differential: seed ${seed}, ${SEQUENCES} sequences, ${requests} requests to each server`);
  },
  300_000,
);
