// A semaphore of Node clients in one queue with locks that are held alone: of python-etcd through a bridge, and of `etcdctl lock`.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { portOf } from '../../../../compat/python.ts';
import { EmbeddedEtcd } from '../../../../src/server/embedded.ts';
import { keysOf } from '../../../support/both.ts';
import { entriesBelow } from '../../../support/gateway.ts';
import { freshName, raw } from '../../../support/locks.ts';
import { until } from '../../../support/until.ts';
import { byEtcdctl } from '../one-counter.ts';
import { useBridge, useLocks, usePython } from '../use-bridge.ts';

const LIMIT = 2;
const CYCLES = 20;
const INSIDE = '/inside';

test(`a semaphore on etcd v3 and through a bridge is never held beside python-etcd or etcdctl, ${CYCLES} times each`, async () => {
  const name = freshName();
  const [etcd, bridge, counting] = [inject('etcd'), await useBridge(), await EmbeddedEtcd.start()];
  onTestFinished(() => counting.stop());
  const isPythonInside = async () => (await raw('GET', INSIDE, undefined, counting.url)).status === 200;
  let [isOver, isGoInside] = [false, false];
  let [now, most] = [0, 0];
  const overlaps: string[] = [];
  const expectAlone = async (holder: string): Promise<void> => {
    if (await isPythonInside()) overlaps.push(`${holder} and python-etcd`);
  };
  const workers = [useLocks('v3'), useLocks('v3'), useLocks('v2', bridge.url), useLocks('v2', bridge.url)];
  const working = workers.map(async (locks) => {
    let holds = 0;
    for (; !isOver; holds += 1)
      await locks.request(name, { limit: LIMIT }, async ({ key }) => {
        now += 1;
        most = Math.max(most, now);
        if (isGoInside) overlaps.push(`${key} and etcdctl`);
        for (let reads = 0; reads < 2; reads += 1) await expectAlone(key);
        if (isGoInside) overlaps.push(`${key} and etcdctl`);
        now -= 1;
      });
    return holds;
  });
  const byPython = async (): Promise<void> => {
    const lock = await (await usePython(bridge.url)).lock(name);
    const options = {
      pause: 0.02,
      lockTtl: 60,
      counterPort: portOf(counting.url),
      inside: INSIDE,
      counter: '/counter',
    };
    expect(await lock.cycle({ times: CYCLES, ...options })).toHaveLength(CYCLES);
  };
  const byGo = async (): Promise<void> => {
    const { hold } = byEtcdctl(etcd, CYCLES);
    for (let cycle = 0; cycle < CYCLES; cycle += 1) {
      const { release } = await hold(`/_locks/${name}`);
      isGoInside = true;
      if (now > 0) overlaps.push('etcdctl and the semaphore');
      await expectAlone('etcdctl');
      await sleep(20);
      isGoInside = false;
      await release();
    }
  };
  await Promise.all([byPython(), byGo()]).finally(() => {
    isOver = true;
  });
  for (const holds of await Promise.all(working)) expect(holds).toBeGreaterThan(0);
  expect(overlaps).toEqual([]);
  expect(most).toBe(LIMIT);
  expect((await raw('GET', '/counter', undefined, counting.url)).body.node.value).toBe(String(CYCLES));
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
});

describe('a semaphore on etcd v3 and through a bridge to both stores', () => {
  test('is held by no more than the limit, also if a client on v2 is blocked on v3 only', async () => {
    const name = freshName();
    const bridge = await useBridge({ api: 'both', metrics: true });
    const onV3 = [useLocks('v3'), useLocks('v3')];
    const [first, second] = [useLocks('v2', bridge.url), useLocks('v2', bridge.url)];
    const held = await Promise.all(onV3.map((locks) => locks.acquire(name, { limit: 3 })));
    held.push(await first.acquire(name, { limit: 3 }));
    const waiting = second.acquire(name, { limit: 3 });
    let isHeld = false;
    void waiting.then(() => {
      isHeld = true;
    });
    const polled = until(
      async () => (await fetch(`${bridge.url}/metrics`)).text(),
      (metrics) => /open_polls 1$/m.test(metrics),
    );
    await Promise.race([waiting, polled]);
    expect(isHeld).toBe(false);
    // Not the entry just before it: the bridge must wait for the whole obstacle.
    await held.shift()?.release();
    held.push(await waiting);
    for (const one of held) await one.release();
    expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
  });
});
