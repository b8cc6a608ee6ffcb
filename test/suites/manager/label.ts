import { describe, expect } from 'vitest';
import { EtcdLockTimeout } from '../../../src/errors.ts';
import { Lock } from '../../../src/python/lock.ts';
import { rejection } from '../../support/clients.ts';
import { HARMLESS, HOSTILE, unprintableIn } from '../../support/hostile.ts';
import { nextWait } from '../stores/interventions.ts';
import { DEFAULT_LABEL, labelled, type ManagerTest } from './managers.ts';

const identity = 'pod-1';
const UUID = '0123456789abcdef0123456789abcdef';

/** Seconds: long enough to read the queue on a busy machine. */
const WAIT = { timeout: 5, ttl: 6 };

/** Labels that do harm when printed, or could be taken for other parts of a value, by what each does. */
const ODD: readonly (readonly [what: string, label: string])[] = [
  ...Object.entries(HOSTILE),
  ['is harmless non-ASCII text', HARMLESS],
  ['contains ":" and "@"', ':a:b@c:d@'],
  ['is "@"', '@'],
  ['looks like a mode', 'shared:'],
  ['looks like an identity', `id:${identity}:${UUID}`],
  ['looks like another value', `:id:other:${UUID}@x`],
  ['contains escapes', '%3A%zz%00%'],
  ['is a space', ' '],
  ['has the maximum length', '🔒'.repeat(25)],
];

/** Labels as another program may write them, and how they are read. */
const FOREIGN: readonly (readonly [what: string, text: string, label?: string])[] = [
  ['is not well encoded', '%zz'],
  ['contains ":" and "@"', 'a:b@c'],
  ['is very long', 'x'.repeat(10_000)],
  ['clears the screen', '\u001b[2J'],
  ['clears the screen, encoded', '%1b%5b2J', '\u001b[2J'],
];

/** What a version without labels reads in a value. */
function readBefore(value: string) {
  const rest = value.replace(/^shared:/, '');
  return { shared: rest !== value, identity: /^id:(.+):([^:]+)$/s.exec(rest)?.[1] };
}

export function labels(test: ManagerTest): void {
  describe('a label', () => {
    test('is host name and process id by default, and is written behind the uuid', async ({ lockName, queue, a }) => {
      const held = await a.locks.acquire(lockName);
      expect(DEFAULT_LABEL).toMatch(/^.+:\d+$/);
      expect(await queue.values()).toEqual([labelled(held.uuid)]);
      expect((await a.locks.query(lockName)).held).toMatchObject([{ uuid: held.uuid, label: DEFAULT_LABEL }]);
      await held.release();
    });

    test('of a request replaces that of the manager, and "" switches it off', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
      const { locks } = await makeProcess({ label: 'nightly' });
      const written = async (label?: string) =>
        locks.request(lockName, { label }, async ({ uuid }) =>
          (await queue.values()).map((value) => value.replace(uuid, 'UUID')),
        );
      expect(await written()).toEqual(['UUID@nightly']);
      expect(await written('weekly')).toEqual(['UUID@weekly']);
      expect(await written('')).toEqual(['UUID']);
      const silent = await makeProcess({ label: '' });
      await silent.locks.request(lockName, async ({ uuid }) => {
        expect(await queue.values()).toEqual([uuid]);
        expect((await silent.locks.query(lockName)).held).toMatchObject([{ uuid, label: undefined }]);
      });
    });

    test('evicts nobody: a request waits for an entry with the same label', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
      const { client, locks } = await makeProcess({ label: 'twin', identity });
      const { key } = await queue.put(`${UUID}@twin`);
      const watched = nextWait(client);
      const waiting = locks.acquire(lockName);
      expect(await watched).toBe(key);
      expect(await queue.entries()).toMatchObject([{ key }, {}]);
      await queue.remove(key);
      await (await waiting).release();
    });

    test.for(ODD)('that %s is read back and does no harm', async ([, label], { lockName, queue, b, makeProcess }) => {
      const { locks } = await makeProcess({ label, identity: `a:${identity}` });
      for (const mode of ['exclusive', 'shared'] as const) {
        const held = await locks.acquire(lockName, { mode });
        const [value = ''] = await queue.values();
        expect(value).toMatch(/^[!-~]+$/);
        expect(readBefore(value)).toEqual({ shared: mode === 'shared', identity: `a:${identity}` });
        const parts = { mode, identity: `a:${identity}`, label, uuid: held.uuid, key: held.key };
        expect((await b.locks.query(lockName)).held).toMatchObject([parts]);
        expect(await held.release()).toBe(true);
      }
      const held = await locks.acquire(lockName);
      // Waits inside the process, where the holder is known.
      const error = await rejection(locks.acquire(lockName, { timeout: 0.01 }), EtcdLockTimeout);
      expect(error.holder?.label).toBe(label);
      expect(error.message).toContain(held.uuid);
      expect(unprintableIn(error.message)).toEqual([]);
      expect(await held.release()).toBe(true);
      expect(await queue.entries()).toEqual([]);
    });

    test.concurrent.for(FOREIGN)(
      'that another program wrote and that %s is shown, escaped',
      async ([, text, label = text], { lockName, queue, a }) => {
        const { key } = await queue.put(`${UUID}@${text}`);
        expect((await a.locks.query(lockName)).held).toMatchObject([{ key, mode: 'exclusive', uuid: UUID, label }]);
        const error = await rejection(a.locks.acquire(lockName, WAIT), EtcdLockTimeout);
        expect(error.holder).toMatchObject({ key, uuid: UUID, label, own: false });
        expect(unprintableIn(error.message)).toEqual([]);
        expect(error.message.length).toBeLessThan(1000);
      },
    );

    test('of the maximum length fits beside the longest name and identity', async ({ lockName, a, b, makeProcess }) => {
      const longest = lockName + 'ü'.repeat((750 - lockName.length) / 2);
      const { locks } = await makeProcess({ label: 'ü'.repeat(50), identity: 'ü'.repeat(100) });
      const held = await locks.acquire(longest, { mode: 'shared' });
      const queue = a.client.store.queue(longest);
      const [entry] = (await queue.read()).entries;
      expect(entry?.key).toBe(held.key);
      // The first request of its connection: etcd limits the first request line.
      if (entry) await b.client.store.queue(longest).evict(entry, {});
      expect((await queue.read()).entries).toEqual([]);
      await held.release();
    });

    test('is read by Lock, which writes none', async ({ lockName, queue, a, b }) => {
      const held = await a.locks.acquire(lockName, { label: 'nightly' });
      const lock = new Lock(b.client, lockName);
      expect(await lock.acquire({ blocking: false })).toBe(false);
      expect(await queue.values()).toEqual([`${held.uuid}@nightly`, lock.uuid]);
      expect(await lock.contenders()).toMatchObject([
        { key: held.key, mode: 'exclusive', identity: undefined, label: 'nightly', uuid: held.uuid },
        { key: lock.lockKey, mode: 'exclusive', identity: undefined, label: undefined, uuid: lock.uuid },
      ]);
      const error = await rejection(lock.acquire({ timeout: WAIT.timeout }), EtcdLockTimeout);
      expect(error.holder).toMatchObject({ key: held.key, label: 'nightly' });
      await held.release();
    });
  });

  describe.concurrent('an entry of a version without labels', () => {
    test.for([
      [UUID, { mode: 'exclusive', identity: undefined, uuid: UUID }],
      [`shared:${UUID}`, { mode: 'shared', identity: undefined, uuid: UUID }],
      [`id:a@b:${UUID}`, { mode: 'exclusive', identity: 'a@b', uuid: UUID }],
      [`shared:id:a:b:${UUID}`, { mode: 'shared', identity: 'a:b', uuid: UUID }],
      ['chosen@by-hand', { mode: 'exclusive', identity: undefined, uuid: 'chosen@by-hand' }],
    ] as const)('is understood: %s', async ([value, parts], { lockName, queue, a }) => {
      const { key } = await queue.put(value);
      const expected = { ...parts, label: undefined, key };
      expect((await a.locks.query(lockName)).held).toEqual([expect.objectContaining(expected)]);
      const error = await rejection(a.locks.acquire(lockName, WAIT), EtcdLockTimeout);
      expect(error.holder).toEqual({ ...expected, value, ttl: expect.any(Number), own: false });
    });

    test('is evicted by its identity, as is one with a label', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ identity });
      for (const value of [`id:${identity}:${UUID}`, `shared:id:${identity}:${UUID}@web-1%3A17`])
        await queue.put(value);
      const held = await locks.acquire(lockName);
      expect(await queue.entries()).toMatchObject([{ key: held.key }]);
      await held.release();
    });
  });
}
