import { expect, test } from 'vitest';
import { fuzzAuth } from '../differential/fuzz.ts';
import { SEEDS } from '../differential/seeds.ts';

const SEQUENCES = 60;

test.concurrent.each(SEEDS.slice(-2))(
  'random requests of users from the seed %i get the same answers from etcd 3.4 and from the embedded server',
  async (seed) => {
    const { requests } = await fuzzAuth(seed, SEQUENCES, { version: '3.4' });
    expect(requests).toBeGreaterThan(1000);
    // biome-ignore lint/suspicious/noConsole: the seed reproduces a failure; the count shows what a success covers.
    console.info(`differential: seed ${seed}, ${SEQUENCES} sequences of users, ${requests} requests to each server`);
  },
);
