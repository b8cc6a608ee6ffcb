import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { baseName } from '../../../src/v2/paths.ts';
import { fencedResource } from '../../support/fenced-resource.ts';
import { freshName, queueOn, untilQueued, useProxy } from '../../support/locks.ts';
import { useManager } from '../../support/managers.ts';
import { type RunningScript, startScript } from '../../support/script.ts';
import { until } from '../../support/until.ts';

/** Seconds. */
const TTL = 9;

const SET_UP = `
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  const { ETCD, NAME, MODE, RESOURCE } = process.env;
  const client = new EtcdClient({ endpoints: ETCD });
  const locks = new LockManager(client, { ttl: ${TTL} });
  const nameOf = (error) => error.name;
`;

/**
 * Holds two locks and notices by the clock that its process was stopped. Then prints what the methods of one hold return, and
 * what the signal of the other one reports.
 */
const HOLDER = `${SET_UP}
  const seen = {};
  const write = async ({ fencingToken }) => (await fetch(RESOURCE + '?token=' + fencingToken, { method: 'POST' })).status;
  /** Calls back in the first pass of the event loop after the process was stopped. */
  const onceStopped = (report) => new Promise((resolve) => {
    let last = performance.now();
    const check = () => {
      const gap = performance.now() - last;
      last += gap;
      if (gap > ${TTL * 500}) resolve(report());
      else setImmediate(check);
    };
    check();
  });
  seen.outcome = await locks.request(NAME, { mode: MODE }, async (held) => {
    const watched = await locks.acquire(NAME + '-watched');
    const checked = onceStopped(async () => {
      seen.expiresIn = held.expiresIn();
      try { held.assertHeld(); } catch (error) { seen.asserted = error.name; }
      await new Promise(setImmediate);
      seen.aborted = watched.signal.aborted && watched.signal.reason.name;
    });
    seen.token = String(held.fencingToken);
    seen.early = await write(held);
    await checked;
    seen.late = await write(held);
    seen.released = await watched.release();
  }).catch(nameOf);
  await client.close();
  console.log(JSON.stringify(seen));
`;

const WAITER = `${SET_UP}
  const run = ({ fencingToken }) => ({ outcome: 'ran', token: String(fencingToken) });
  const result = await locks.request(NAME, { mode: MODE }, run).catch((error) => ({ outcome: nameOf(error) }));
  await client.close();
  console.log(JSON.stringify(result));
`;

function start(source: string, env: Record<string, string>): RunningScript {
  const script = startScript(source, { ETCD: inject('etcd'), ...env });
  onTestFinished(() => {
    script.process.kill('SIGKILL');
  });
  return script;
}

/** Waits for the script to succeed and returns what it printed. */
async function outputOf({ result }: RunningScript): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await result;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout);
}

describe.each(['exclusive', 'shared'])('a process stopped for longer than its TTL (%s)', (mode) => {
  test('has lost its lock: it notices the loss as soon as it runs again, and a fence refuses its late write', async () => {
    const name = freshName();
    const resource = await fencedResource();
    const old = start(HOLDER, { NAME: name, MODE: mode, RESOURCE: resource.url });
    await until(
      () => resource.written.length,
      (count) => count === 1,
    );
    old.process.kill('SIGSTOP');
    const successor = await useManager({ ttl: 60 }).acquire(name);
    await untilQueued(`${name}-watched`, 0);
    await resource.write(successor.fencingToken);
    old.process.kill('SIGCONT');
    const { token, ...seen } = await outputOf(old);
    expect(seen).toEqual({
      early: 200,
      expiresIn: 0,
      asserted: 'EtcdLockLost',
      aborted: 'EtcdLockLost',
      late: 409,
      released: false,
      outcome: 'EtcdLockLost',
    });
    expect(successor.fencingToken).toBeGreaterThan(BigInt(String(token)));
    expect(resource.written).toEqual([BigInt(String(token)), successor.fencingToken]);
    expect(await queueOn(name)).toMatchObject([{ key: successor.key }]);
    expect(await successor.release()).toBe(true);
  });

  test('has lost its entry in the queue: it queues up again, behind who came in the meantime', async () => {
    const name = freshName();
    const holder = await useManager({ ttl: 60 }).acquire(name);
    const proxy = await useProxy();
    const waits = proxy.next(({ query }) => query.has('wait'), 'headers');
    const waiter = start(WAITER, { NAME: name, MODE: mode, ETCD: proxy.url });
    await waits;
    waiter.process.kill('SIGSTOP');
    await untilQueued(name, 1);
    await holder.release();
    const next = await useManager({ ttl: 60 }).acquire(name);
    waiter.process.kill('SIGCONT');
    const [, again] = await untilQueued(name, 2);
    await next.release();
    const { outcome, token } = await outputOf(waiter);
    expect({ outcome, token }).toEqual({ outcome: 'ran', token: String(BigInt(baseName(again?.key ?? ''))) });
    expect(BigInt(String(token))).toBeGreaterThan(next.fencingToken);
    expect(await queueOn(name)).toEqual([]);
  });
});
