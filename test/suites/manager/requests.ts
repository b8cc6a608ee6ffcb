import { describe, expect } from 'vitest';
import { EtcdLockReleased } from '../../../src/errors.ts';
import type { Held } from '../../../src/manager/held.ts';
import { duringNext, loseNextAnswer, requestsOf } from '../stores/interventions.ts';
import { labelled, type ManagerTest } from './managers.ts';

/** Values that a callback may throw: errors and anything else. */
const THROWN: readonly unknown[] = [new Error('own'), Object.freeze(new Error('frozen')), 'text', 0, null, undefined];

export function requests(test: ManagerTest): void {
  describe('a request', () => {
    test('runs its callback while it holds the lock, then releases the lock', async ({ lockName, queue, a }) => {
      const key = await a.locks.request(lockName, async (held) => {
        expect(await queue.entries()).toMatchObject([{ key: held.key, value: labelled(held.uuid) }]);
        return held.key;
      });
      expect(key.startsWith(`${queue.path}/`)).toBe(true);
      expect(await queue.entries()).toEqual([]);
    });

    test('passes the details of the hold to its callback', async ({ lockName, queue, makeProcess }) => {
      const { locks } = await makeProcess({ ttl: 60, margin: 10 });
      await locks.request(lockName, async (held) => {
        expect(held).toMatchObject({
          name: lockName,
          mode: 'exclusive',
          uuid: expect.stringMatching(/^[0-9a-f]{32}$/),
        });
        const [entry] = await queue.entries();
        expect(held.key).toBe(entry?.key);
        expect(held.fencingToken).toBeGreaterThanOrEqual(entry?.rank ?? 0n);
        expect(held.signal.aborted).toBe(false);
        expect(held.expiresIn()).toBeGreaterThan(0);
        expect(held.expiresIn()).toBeLessThanOrEqual(50);
        held.assertHeld();
      });
    });

    test.for([
      ['resolves to', async () => 'result'],
      ['returns', () => 'result'],
    ])('resolves to what its callback %s', async ([, callback], { lockName, a }) => {
      expect(await a.locks.request<unknown>(lockName, callback as () => unknown)).toBe('result');
    });

    test.for(THROWN)('rejects with what its callback rejects with: %s', async (thrown, { lockName, queue, a }) => {
      await expect(a.locks.request(lockName, () => Promise.reject(thrown))).rejects.toBe(thrown);
      expect(await queue.entries()).toEqual([]);
    });

    test.for(THROWN)('rejects with what its callback throws: %s', async (thrown, { lockName, queue, a }) => {
      const throwing = () => {
        throw thrown;
      };
      await expect(a.locks.request(lockName, throwing)).rejects.toBe(thrown);
      expect(await queue.entries()).toEqual([]);
    });

    test('adds nothing to an error of the callback if the lock was not lost', async ({ lockName, a }) => {
      const own = new Error('own');
      await expect(a.locks.request(lockName, () => Promise.reject(own))).rejects.toBe(own);
      expect(own).not.toHaveProperty('lockError');
    });

    test('invalidates its hold after the callback', async ({ lockName, a }) => {
      const held = await a.locks.request(lockName, (held) => held);
      expect(() => held.assertHeld()).toThrow(EtcdLockReleased);
      expect(held.expiresIn()).toBe(0);
      expect(held.signal.aborted).toBe(false);
    });

    test('has a new uuid and a greater token each time', async ({ lockName, a, b }) => {
      const holds: Held[] = [];
      for (const { locks } of [a, b, a]) holds.push(await locks.request(lockName, (held) => held));
      const tokens = holds.map(({ fencingToken }) => fencingToken);
      expect(tokens.toSorted((x, y) => Number(x - y))).toEqual(tokens);
      expect(new Set(tokens).size).toBe(3);
      expect(new Set(holds.map(({ uuid }) => uuid)).size).toBe(3);
    });

    test('has a hold that becomes JSON with its fencing token as a string', async ({ lockName, a }) => {
      await a.locks.request(lockName, async (held) => {
        const { name, mode, key, uuid, fencingToken } = held;
        const json = { name, mode, key, uuid, fencingToken: fencingToken.toString() };
        expect(JSON.parse(JSON.stringify(held))).toEqual(json);
        expect(JSON.parse(JSON.stringify({ held, token: String(fencingToken) }))).toEqual({
          held: json,
          token: json.fencingToken,
        });
      });
      await using open = await a.locks.acquire(lockName);
      expect(JSON.parse(JSON.stringify(open))).toHaveProperty('fencingToken', String(open.fencingToken));
    });

    test('takes its TTL from the options, else from the manager, else 30 s', async ({
      lockName,
      queue,
      a,
      makeProcess,
    }) => {
      const b = await makeProcess({ ttl: 600 });
      const ttl = async () => (await queue.entries())[0]?.ttl;
      expect(await a.locks.request(lockName, ttl)).toSatisfy((left: number) => left > 20 && left <= 30);
      expect(await b.locks.request(lockName, ttl)).toSatisfy((left: number) => left > 500 && left <= 600);
      expect(await b.locks.request(lockName, { ttl: 60 }, ttl)).toSatisfy((left: number) => left > 50 && left <= 60);
    });

    test('does not wait for a lock whose name is below its own', async ({ lockName, a, b }) => {
      const outer = await b.locks.acquire(`${lockName}/inner`);
      await a.locks.request(lockName, async (held) => expect(held.name).toBe(lockName));
      await outer.release();
    });

    test('for a free lock sends only an append and a removal', async ({ lockName, a }) => {
      await a.locks.query(lockName); // so that the store has answered before
      const calls = requestsOf(a.client);
      await a.locks.request(lockName, () => {});
      expect(calls()).toEqual(['append', 'remove']);
    });

    test('has only one entry if the answer to its append was lost', async ({ lockName, queue, a }) => {
      await a.locks.query(lockName); // so that the store has answered before
      loseNextAnswer(a.client, 'append');
      await a.locks.request(lockName, async (held) => {
        expect(await queue.entries()).toMatchObject([{ key: held.key, value: labelled(held.uuid) }]);
      });
      expect(await queue.entries()).toEqual([]);
    });

    test('leaves no entry if the answer to its append was lost and its signal aborted', async ({
      lockName,
      queue,
      a,
    }) => {
      const abort = new AbortController();
      loseNextAnswer(a.client, 'append');
      duringNext(a.client, 'append', () => abort.abort('reason'));
      const ended = a.locks.request(lockName, { signal: abort.signal }, () => expect.unreachable());
      await expect(ended).rejects.toBe('reason');
      expect(await queue.entries()).toEqual([]);
    });

    test('with an invalid option makes no call', async ({ lockName, a }) => {
      const calls = requestsOf(a.client);
      const callback = () => expect.unreachable();
      await expect(a.locks.request('', callback)).rejects.toThrow('lock name');
      await expect(a.locks.request(lockName, { ttl: 0 }, callback)).rejects.toThrow('ttl');
      await expect(a.locks.request(lockName, 'callback' as never)).rejects.toThrow('callback');
      expect(calls()).toEqual([]);
    });

    test.for(['with space', 'umläut', '中文 🔒', 'a/b/c', '_hidden', 'q?x=1#tag', 'percent%41', '7'])(
      'can be for a lock with the name %j',
      async (odd, { lockName, observer, a, b }) => {
        const held = await a.locks.acquire(`${lockName}/${odd}`, { identity: odd });
        const [entry] = await observer.view(`${lockName}/${odd}`).entries();
        expect(entry).toMatchObject({ key: held.key, value: labelled(`id:${odd}:${held.uuid}`) });
        expect(await b.locks.acquire(`${lockName}/${odd}`, { ifAvailable: true })).toBeNull();
        expect(await held.release()).toBe(true);
      },
    );
  });
}
