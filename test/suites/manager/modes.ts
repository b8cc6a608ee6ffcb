import { describe, expect } from 'vitest';
import type { LockMode } from '../../../src/recipe/entries/entry-value.ts';
import { gate } from '../../support/gate.ts';
import { SharedResource } from '../../support/shared-resource.ts';
import { labelled, type ManagerTest } from './managers.ts';

const shared = { mode: 'shared' } as const;

export function modes(test: ManagerTest): void {
  describe('a shared lock', () => {
    test('has an entry whose value begins with "shared:"', async ({ lockName, queue, a, makeProcess }) => {
      const named = await makeProcess({ identity: 'pod-1' });
      const one = await a.locks.acquire(lockName, shared);
      const other = await named.locks.acquire(lockName, shared);
      expect(await queue.values()).toEqual([labelled(`shared:${one.uuid}`), labelled(`shared:id:pod-1:${other.uuid}`)]);
      expect(one.mode).toBe('shared');
      for (const held of [one, other]) await held.release();
    });

    test('is held by several readers of several processes together, each with its own token', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const holds = [];
      for (const { locks } of [a, b, a, b]) holds.push(await locks.acquire(lockName, shared));
      for (const held of holds) held.assertHeld();
      expect(await queue.entries()).toMatchObject(holds.map(({ key }) => ({ key })));
      expect(new Set(holds.map(({ fencingToken }) => fencingToken)).size).toBe(4);
      for (const held of holds) expect(await held.release()).toBe(true);
    });

    test('is acquired by a writer only after the last reader has released it', async ({
      lockName,
      queue,
      a,
      b,
      makeProcess,
    }) => {
      const c = await makeProcess();
      const [first, second] = [await a.locks.acquire(lockName, shared), await b.locks.acquire(lockName, shared)];
      let isHeld = false;
      const writer = c.locks.request(lockName, async () => {
        isHeld = true;
      });
      await queue.untilLength(3);
      await first.release();
      expect(await queue.entries()).toMatchObject([{ key: second.key }, {}]);
      expect(isHeld).toBe(false);
      await second.release();
      await writer;
      expect(isHeld).toBe(true);
    });

    test('does not let a reader overtake a waiting writer', async ({ lockName, queue, a, b, makeProcess }) => {
      const c = await makeProcess();
      const order: string[] = [];
      const reader = await a.locks.acquire(lockName, shared);
      const writer = b.locks.request(lockName, async () => {
        order.push('writer');
      });
      await queue.untilLength(2);
      const late = c.locks.request(lockName, shared, async () => {
        order.push('reader');
      });
      await queue.untilLength(3);
      expect(order).toEqual([]);
      await reader.release();
      await Promise.all([writer, late]);
      expect(order).toEqual(['writer', 'reader']);
    });

    test('is acquired by waiting readers together once the writer before them has released it', async ({
      lockName,
      queue,
      a,
      b,
      makeProcess,
    }) => {
      const c = await makeProcess();
      const writer = await a.locks.acquire(lockName);
      const inside = [gate(), gate()];
      const readers = [b, c].map(({ locks }, i) =>
        locks.request(lockName, shared, async () => {
          inside[i]?.open();
          await Promise.all(inside.map(({ opened }) => opened));
        }),
      );
      await queue.untilLength(3);
      await writer.release();
      await Promise.all(readers);
      expect(await queue.entries()).toEqual([]);
    });

    test('is acquired by waiting readers when the writer before them gives up', async ({
      lockName,
      queue,
      a,
      b,
      makeProcess,
    }) => {
      const c = await makeProcess();
      const abort = new AbortController();
      const reader = await a.locks.acquire(lockName, shared);
      const gaveUp = expect(b.locks.acquire(lockName, { signal: abort.signal })).rejects.toBe('reason');
      await queue.untilLength(2);
      const late = c.locks.acquire(lockName, shared);
      await queue.untilLength(3);
      abort.abort('reason');
      await gaveUp;
      await (await late).release();
      reader.assertHeld();
      await reader.release();
    });
  });

  test('requests of several processes are served in the order of their entries', async ({
    lockName,
    queue,
    makeProcess,
  }) => {
    const order: number[] = [];
    const holder = await queue.put('holder');
    const served: Promise<number>[] = [];
    for (const [i, mode] of (['exclusive', 'shared', 'exclusive', 'exclusive', 'shared'] as const).entries()) {
      const { locks } = await makeProcess();
      served.push(locks.request(lockName, { mode }, () => order.push(i)));
      await queue.untilLength(i + 2);
    }
    await queue.remove(holder.key);
    await Promise.all(served);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  test('writers of three processes never overlap with readers or with each other', async ({
    lockName,
    queue,
    a,
    b,
    makeProcess,
  }) => {
    const resource = new SharedResource();
    const tokens = new Map<LockMode, bigint[]>([
      ['exclusive', []],
      ['shared', []],
    ]);
    const processes = [a, b, await makeProcess()];
    const turns = processes.flatMap(({ locks }, p) =>
      Array.from({ length: 8 }, (_, i) => {
        const mode = (i + p) % 3 === 0 ? 'exclusive' : 'shared';
        return locks.request(lockName, { mode }, (held) => {
          tokens.get(mode)?.push(held.fencingToken);
          return resource.use(mode, () => queue.entries());
        });
      }),
    );
    await Promise.all(turns);
    const written = tokens.get('exclusive') ?? [];
    expect(written.toSorted((x, y) => Number(x - y))).toEqual(written);
    // Readers that hold the lock together may have the same token.
    const read = new Set(tokens.get('shared'));
    expect(new Set(written).size).toBe(written.length);
    expect(written.filter((token) => read.has(token))).toEqual([]);
    expect(await queue.entries()).toEqual([]);
  });
}
