import { expect, test } from 'vitest';
import { ExclusiveResource } from '../../../compat/exclusive-resource.ts';
import type { Held } from '../../../src/index.ts';
import { useBeatClock } from '../../support/beat-clock.ts';
import { freshName, queueOn, useProxy } from '../../support/locks.ts';
import { useManager } from '../../support/managers.ts';
import type { EtcdProxy, ProxiedRequest } from '../../support/proxy.ts';
import { until } from '../../support/until.ts';

// A removal that takes long on a busy machine is not left to the background, where the next key would come before its end.
useBeatClock();

const REQUESTS = 1000;
const TURNS = 20;

const isPoll = ({ query }: ProxiedRequest): boolean => query.has('wait');
const isAppend = ({ method }: ProxiedRequest): boolean => method === 'POST';
const isRemoval = ({ method, status }: ProxiedRequest): boolean => method === 'DELETE' && status === 200;

/** Tracks the highest numbers of keys and long polls that the process behind the proxy has at a time. */
function loadOn(proxy: EtcdProxy): { keys: number; polls: number } {
  const most = { keys: 0, polls: 0 };
  let keys = 0;
  proxy.intercept((request) => {
    // All keys that it appended, without those that are surely removed by now.
    if (isAppend(request)) keys = proxy.requests.filter(isAppend).length - proxy.requests.filter(isRemoval).length;
    most.keys = Math.max(most.keys, keys);
    most.polls = Math.max(most.polls, [...proxy.open].filter(isPoll).length);
    return undefined;
  });
  return most;
}

interface Hold {
  readonly by: string;
  readonly token: bigint;
}

/** Makes many requests at once, in one process behind a proxy. */
async function setUp() {
  const proxy = await useProxy();
  const name = freshName();
  const resource = new ExclusiveResource();
  const holds: Hold[] = [];
  /** By default the work lasts long enough for a second holder to enter, if the lock failed. */
  const hold =
    (by: string, work: () => Promise<unknown> = () => new Promise(setImmediate)) =>
    (held: Held) =>
      resource.use(by, () => {
        holds.push({ by, token: held.fencingToken });
        return work();
      });
  const locks = useManager({ ttl: 600 }, { endpoints: proxy.url });
  const most = loadOn(proxy);
  const all = Array.from({ length: REQUESTS }, (_, i) => locks.request(name, hold(`request ${i}`)));
  return { proxy, name, holds, hold, most, all: Promise.all(all) };
}

const inOrder = Array.from({ length: REQUESTS }, (_, i) => `request ${i}`);

function expectGrowingTokens(holds: readonly Hold[]): void {
  const tokens = holds.map(({ token }) => token);
  expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)));
}

test(`${REQUESTS} concurrent requests run one at a time, in order, with growing tokens, one key and no poll`, async () => {
  const { name, holds, most, all } = await setUp();
  await all;
  expect(holds.map(({ by }) => by)).toEqual(inOrder);
  expectGrowingTokens(holds);
  expect(most).toEqual({ keys: 1, polls: 0 });
  expect(await queueOn(name)).toEqual([]);
});

test('another process gets the lock in between, at the cost of one poll', async () => {
  const { proxy, name, holds, hold, most, all } = await setUp();
  const other = useManager({ ttl: 60 });
  /** Waits until the process behind the proxy polls for its next turn. */
  const otherWaits = () =>
    until(
      () => [...proxy.open].filter(isPoll).length,
      (polls) => polls > 0,
    );
  for (let turn = 0; turn < TURNS; turn += 1) await other.request(name, hold('other', otherWaits));
  const ownTurns = holds.length - TURNS;
  await all;
  expect(holds.filter(({ by }) => by === 'other')).toHaveLength(TURNS);
  expect(holds.filter(({ by }) => by !== 'other').map(({ by }) => by)).toEqual(inOrder);
  expectGrowingTokens(holds);
  // One turn between two of the other process, or a few when that process was slow to queue again.
  expect(ownTurns).toBeGreaterThanOrEqual(TURNS - 1);
  expect(ownTurns).toBeLessThan(REQUESTS / 2);
  expect(most).toEqual({ keys: 1, polls: 1 });
  expect(await queueOn(name)).toEqual([]);
});
