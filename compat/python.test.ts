import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { until } from '../test/support/until.ts';
import { type Python, PythonError, type PythonLock, startPython } from './python.ts';

const etcd = inject('etcd');

describe('python-etcd under the harness', () => {
  let python: Python;
  let name: string;

  beforeAll(async () => {
    python = await startPython(etcd);
  });

  afterAll(async () => {
    await python.stop();
  });

  beforeEach(() => {
    name = `harness-${randomUUID()}`;
  });

  test('acquire() adds an entry with the uuid of the lock, and release() removes it', async () => {
    const lock = await python.lock(name);
    expect(await lock.acquire({ lockTtl: 60 })).toBe(true);
    expect(await lock.isAcquired()).toBe(true);
    const { uuid, isTaken, lockKey } = await lock.state();
    expect(isTaken).toBe(true);
    expect(await lock.contenders()).toEqual([{ key: lockKey, value: uuid }]);
    await lock.release();
    expect(await lock.contenders()).toEqual([]);
    expect(await lock.isAcquired()).toBe(false);
  });

  test('a new lock has a uuid but no key', async () => {
    const lock = await python.lock(name);
    const state = await lock.state();
    expect(state).toEqual({ uuid: expect.stringMatching(/^[0-9a-f]{32}$/), isTaken: false, lockKey: null });
    expect(await lock.contenders()).toEqual([]);
  });

  test('a second lock waits until the first one is released, and blocks no other command', async () => {
    const [first, second] = [await python.lock(name), await python.lock(name)];
    await first.acquire({ lockTtl: 60 });
    const acquired = second.acquire({ lockTtl: 60 });
    await queueLength(first, 2);
    expect(await second.state()).toMatchObject({ isTaken: false });
    await first.release();
    expect(await acquired).toBe(true);
    await second.release();
  });

  test('a non-blocking acquire() of a held lock returns false and keeps its entry', async () => {
    const [first, second] = [await python.lock(name), await python.lock(name)];
    await first.acquire({ lockTtl: 60 });
    expect(await second.acquire({ blocking: false, lockTtl: 60 })).toBe(false);
    expect(await second.contenders()).toHaveLength(2);
    await first.release();
    await second.release();
  });

  test('a hold ends after its seconds, or on release()', async () => {
    const [first, second] = [await python.lock(name), await python.lock(name)];
    const short = await first.hold({ lockTtl: 60, seconds: 0.05 });
    await short.released;
    const long = await second.hold({ lockTtl: 60 });
    expect((await second.state()).isTaken).toBe(true);
    await second.release();
    await long.released;
    expect(await second.contenders()).toEqual([]);
  });

  test('cycling locks lose no count, and each holds ever greater keys', async () => {
    const counter = `/harness-counter/${randomUUID()}`;
    const locks = [await python.lock(name), await python.lock(name), await python.lock(name)];
    const cycle = { times: 5, counter, pause: 0.002, lockTtl: 60 };
    const held = await Promise.all(locks.map((lock) => lock.cycle(cycle)));
    for (const keys of held) expect(keys).toEqual([...keys].sort());
    const answer = await fetch(`${etcd}/v2/keys${counter}?quorum=true`);
    expect(await answer.json()).toMatchObject({ node: { value: '15' } });
  });

  test('a lock with the uuid of another lock finds the key of that lock in the queue', async () => {
    const first = await python.lock(name);
    await first.acquire({ lockTtl: 60 });
    const { uuid, lockKey } = await first.state();
    const adopter = await python.lock(name);
    await adopter.setUuid(uuid);
    expect(await adopter.state()).toMatchObject({ uuid, lockKey });
    const given = await python.lock(name, { uuid });
    expect(await given.acquire({ blocking: false, lockTtl: 60 })).toBe(true);
    await given.release();
  });

  test('a Python exception rejects the call with the name of its class', async () => {
    const lock = await python.lock(name);
    const error = await lock.setUuid('never seen').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(PythonError);
    expect(error).toMatchObject({ type: 'ValueError', message: 'ValueError: Inexistent UUID' });
  });

  test('a lock can have its own prefix', async () => {
    const lock = await python.lock(name, { client: { lockPrefix: '/_elsewhere' } });
    await lock.acquire({ lockTtl: 60 });
    expect((await lock.state()).lockKey).toMatch(`/_elsewhere/${name}/`);
    await lock.release();
  });
});

describe('a Python process', () => {
  let python: Python;

  afterEach(async () => {
    await python.stop();
  });

  test('leaves its keys in the queue and rejects pending calls when it is killed', async () => {
    python = await startPython(etcd);
    const name = `harness-${randomUUID()}`;
    const [first, second] = [await python.lock(name), await python.lock(name)];
    await first.acquire({ lockTtl: 60 });
    const pending = second.acquire({ lockTtl: 60 });
    await queueLength(first, 2);
    await python.kill();
    await expect(pending).rejects.toThrow('the Python process has ended');
    await expect(first.state()).rejects.toThrow('the Python process has ended');
    const answer = await fetch(`${etcd}/v2/keys/_locks/${name}?quorum=true`);
    expect(((await answer.json()) as { node: { nodes: unknown[] } }).node.nodes).toHaveLength(2);
  });

  test('stops although one of its locks blocks forever', async () => {
    python = await startPython(etcd);
    const name = `harness-${randomUUID()}`;
    const [first, second] = [await python.lock(name), await python.lock(name)];
    await first.acquire({ lockTtl: 60 });
    const pending = second.acquire({ lockTtl: 60 });
    await queueLength(first, 2);
    await python.stop();
    await expect(pending).rejects.toThrow('the Python process has ended');
  });
});

async function queueLength(lock: PythonLock, length: number): Promise<void> {
  await until(
    () => lock.contenders(),
    (queue) => queue.length === length,
  );
}
