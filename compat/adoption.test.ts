import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { freshName, queueOn, rejection, untilQueued } from '../test/support/locks.ts';
import { startScript } from '../test/support/script.ts';
import { type Python, startPython } from './python.ts';
import { BOTH_WAYS, lockOn } from './sides.ts';

let python: Python;

beforeAll(async () => {
  python = await startPython(inject('etcd'));
});

afterAll(() => python.stop());

/** Starts a Python process for one test to kill. */
async function mortalPython(): Promise<Python> {
  const mortal = await startPython(inject('etcd'));
  onTestFinished(() => mortal.stop());
  return mortal;
}

describe.each(BOTH_WAYS)('an entry created in %s and adopted in %s', (one, other) => {
  test('is found by its uuid, renewed by acquire() under the same key, and removed by release()', async () => {
    const name = freshName();
    const gone = await lockOn(one, python, name);
    await gone.acquire({ lockTtl: 60 });
    const { uuid, lockKey } = await gone.state();

    const heir = await lockOn(other, python, name);
    await heir.setUuid(uuid);
    expect(await heir.state()).toEqual({ uuid, lockKey, isTaken: false });
    expect(await heir.isAcquired()).toBe(false);
    expect(await heir.acquire({ blocking: false, lockTtl: 90 })).toBe(true);
    expect(await heir.isAcquired()).toBe(true);
    const [entry, ...others] = await queueOn(name);
    expect(entry).toMatchObject({ key: lockKey, value: uuid });
    expect(entry?.ttl).toBeGreaterThan(60);
    expect(others).toEqual([]);

    await heir.release();
    expect(await queueOn(name)).toEqual([]);
    expect(await gone.isAcquired()).toBe(false);
  });

  test('keeps its position in the middle of the queue', async () => {
    const name = freshName();
    const [first, middle, last] = [
      await lockOn(other, python, name),
      await lockOn(one, python, name),
      await lockOn(one, python, name),
    ];
    await first.acquire({ lockTtl: 60 });
    await middle.acquire({ blocking: false, lockTtl: 60 });
    await last.acquire({ blocking: false, lockTtl: 60 });
    const { uuid } = await middle.state();

    const heir = await lockOn(other, python, name);
    await heir.setUuid(uuid);
    const waiting = heir.acquire({ lockTtl: 60 });
    expect(await untilQueued(name, 3)).toMatchObject([{}, { value: uuid }, { value: (await last.state()).uuid }]);
    await first.release();
    expect(await waiting).toBe(true);
    expect(await last.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    await heir.release();
    expect(await last.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    await last.release();
  });
});

describe('a uuid that is not in the queue', () => {
  test.each(['Node', 'Python'] as const)(
    'makes setUuid() in %s throw "Inexistent UUID" and keep the old uuid',
    async (side) => {
      const name = freshName();
      const lock = await lockOn(side, python, name);
      const before = await lock.state();
      const error = await rejection(lock.setUuid(randomUUID()));
      // PythonError puts the class before python's own message.
      expect((error as Error).message.replace(/^ValueError: /, '')).toBe('Inexistent UUID');
      expect(await lock.state()).toEqual(before);
      expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
      expect(await queueOn(name)).toMatchObject([{ value: before.uuid }]);
      await lock.release();
    },
  );
});

describe('after SIGKILL', () => {
  test('of a Python holder, Node adopts its uuid and gets the lock at once', async () => {
    const name = freshName();
    const mortal = await mortalPython();
    const victim = await mortal.lock(name);
    await victim.acquire({ lockTtl: 3600 });
    const { uuid, lockKey } = await victim.state();
    await mortal.kill();
    expect(mortal.process.signalCode).toBe('SIGKILL');

    const heir = await lockOn('Node', python, name);
    await heir.setUuid(uuid);
    expect(await heir.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    expect(await heir.state()).toEqual({ uuid, lockKey, isTaken: true });
    await heir.release();
    expect(await queueOn(name)).toEqual([]);
  });

  test('of a Python waiter, Node adopts its entry and gets the lock when the holder releases it', async () => {
    const name = freshName();
    const holder = await lockOn('Python', python, name);
    await holder.acquire({ lockTtl: 60 });
    const mortal = await mortalPython();
    const victim = await mortal.lock(name);
    const never = rejection(victim.acquire({ lockTtl: 3600 }));
    const [, left] = await untilQueued(name, 2);
    await mortal.kill();
    expect(await never).toMatchObject({ message: expect.stringContaining('the Python process has ended') });

    const heir = await lockOn('Node', python, name);
    await heir.setUuid(left?.value ?? '');
    const waiting = heir.acquire({ lockTtl: 60 });
    await holder.release();
    expect(await waiting).toBe(true);
    expect(await heir.state()).toMatchObject({ lockKey: left?.key });
    await heir.release();
  });

  test('of a Node holder that kept its lock alive, Python adopts its uuid and gets the lock at once', async () => {
    const name = freshName();
    const { process: victim } = startScript(`
      import { EtcdClient, Lock } from 'etcd-v2-lock';
      const client = new EtcdClient({ endpoints: ${JSON.stringify(inject('etcd'))} });
      await new Lock(client, ${JSON.stringify(name)}).acquire({ lockTtl: 3600, keepAlive: true });
      setInterval(() => {}, 60_000);
    `);
    const ended = new Promise((resolve) => victim.once('exit', (_, signal) => resolve(signal)));
    onTestFinished(() => void victim.kill('SIGKILL'));
    const [entry] = await untilQueued(name, 1);
    victim.kill('SIGKILL');
    expect(await ended).toBe('SIGKILL');

    const heir = await lockOn('Python', python, name);
    await heir.setUuid(entry?.value ?? '');
    expect(await heir.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    expect(await heir.state()).toEqual({ uuid: entry?.value, lockKey: entry?.key, isTaken: true });
    await heir.release();
    expect(await queueOn(name)).toEqual([]);
  });
});
