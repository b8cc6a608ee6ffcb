import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { lockByEtcdctl } from '../support/etcdctl.mjs';
import { entriesBelow } from '../support/gateway.ts';
import { freshName } from '../support/locks.ts';

const LIMIT = 2;
const WORKERS = 4;
const CYCLES = 20;

test(`a semaphore has at most its limit of holders, and none while \`etcdctl lock\` holds the lock, ${CYCLES} times`, async () => {
  const name = freshName();
  let [isOver, isGoInside] = [false, false];
  let [now, most] = [0, 0];
  const overlaps: string[] = [];
  const workers = Array.from({ length: WORKERS }, async () => {
    const client = new V3Client({ endpoints: inject('etcd') });
    onTestFinished(() => client.close());
    const locks = new LockManager(client, { ttl: 60 });
    let holds = 0;
    for (; !isOver; holds += 1)
      await locks.request(name, { limit: LIMIT }, async ({ key }) => {
        now += 1;
        most = Math.max(most, now);
        if (isGoInside) overlaps.push(key);
        await sleep(10);
        if (isGoInside) overlaps.push(key);
        now -= 1;
      });
    return holds;
  });
  const tokens: bigint[] = [];
  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    const go = lockByEtcdctl(`/_locks/${name}`, { endpoints: [inject('etcd')], ttl: 60 });
    onTestFinished(() => go.kill());
    const { key, token } = await go.held;
    isGoInside = true;
    if (now > 0) overlaps.push(key);
    tokens.push(token);
    await sleep(20);
    isGoInside = false;
    await go.release();
  }
  isOver = true;
  for (const holds of await Promise.all(workers)) expect(holds).toBeGreaterThan(0);
  expect(overlaps).toEqual([]);
  expect(most).toBe(LIMIT);
  expect(tokens.toSorted((a, b) => Number(a - b))).toEqual(tokens);
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
}, 240_000);
