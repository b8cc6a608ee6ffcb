import { expect, test } from 'vitest';
import { fuzz, fuzzAuth } from '../../test/server/v3/differential/fuzz.ts';
import { SEEDS } from '../../test/server/v3/differential/seeds.ts';
import { built } from './built.ts';

const SEQUENCES = 110;
const REQUESTS = 20_000;

const requests = { '3.5': 0, '3.6': 0 };

const VERSIONS = ['3.5', '3.6'] as const;

test.concurrent.each(VERSIONS.flatMap((version) => SEEDS.map((seed) => [version, seed] as const)))(
  'random requests get the same answers from etcd %s and from the embedded server (seed %i)',
  async (version, seed) => {
    const sent = await fuzz(seed, SEQUENCES, { version, program: built(version) });
    requests[version] += sent.requests;
    // biome-ignore lint/suspicious/noConsole: the seed reproduces a failure; the count shows what a success covers.
    console.info(`${version}: seed ${seed}, ${sent.sequences} sequences, ${sent.requests} requests to each server`);
  },
);

test.each(VERSIONS)('these are at least 20,000 requests to etcd %s', (version) => {
  expect(requests[version]).toBeGreaterThanOrEqual(REQUESTS);
});

test.concurrent.each(VERSIONS)(
  'random requests of users get the same answers from etcd %s and from the embedded server',
  async (version) => {
    for (const seed of SEEDS.slice(-2)) {
      const sent = await fuzzAuth(seed, 60, { version, program: built(version) });
      expect(sent.requests).toBeGreaterThan(1000);
      // biome-ignore lint/suspicious/noConsole: as above.
      console.info(`${version}: seed ${seed}, ${sent.sequences} sequences of users, ${sent.requests} requests`);
    }
  },
);
