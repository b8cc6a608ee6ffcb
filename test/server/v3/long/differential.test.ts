import { expect, test } from 'vitest';
import { fuzz } from '../differential/fuzz.ts';
import { SEEDS } from '../differential/seeds.ts';

const SEQUENCES = 110;
const REQUESTS = 20_000;

let requests = 0;

test.concurrent.each(SEEDS)(
  'random requests from the seed %i get the same answers from etcd 3.4 and from the embedded server',
  async (seed) => {
    const sent = await fuzz(seed, SEQUENCES, { version: '3.4' });
    requests += sent.requests;
    // biome-ignore lint/suspicious/noConsole: the seed reproduces a failure; the count shows what a success covers.
    console.info(`differential: seed ${seed}, ${sent.sequences} sequences, ${sent.requests} requests to each server`);
  },
);

test('these are at least 20,000 requests', () => {
  expect(requests).toBeGreaterThanOrEqual(REQUESTS);
});
