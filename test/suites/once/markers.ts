import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished } from 'vitest';
import { EtcdConnectionFailed } from '../../../src/errors.ts';
import type { MarkerStore } from '../../../src/recipe/store.ts';
import { rejection } from '../../support/clients.ts';
import { until } from '../../support/until.ts';
import type { ManagerTest } from '../manager/managers.ts';
import { loseNextAnswer } from '../stores/interventions.ts';
import type { QueueView } from '../stores/store-client.ts';

/** Seconds. */
const TTL = 600;

/** Returns a value that no other test writes. */
const fresh = (text: string): string => `${text} ${randomUUID()}`;

/** Removes the marker at the end of the test. */
export function cleanUp({ key }: MarkerStore, queue: QueueView): void {
  onTestFinished(() => queue.remove(key).catch(() => {}));
}

export function markers(test: ManagerTest): void {
  const markerTest = test
    .extend('one', () => fresh('one'))
    .extend('two', () => fresh('two'))
    .extend('three', () => fresh('three'))
    .extend('marker', ({ a, lockName, queue }) => {
      const marker = a.client.store.marker(lockName);
      cleanUp(marker, queue);
      return marker;
    });

  describe('a marker', () => {
    markerTest('does not exist at first', async ({ marker }) => {
      expect(await marker.read({})).toBeUndefined();
    });

    markerTest('is there for every client once it has been written', async ({ marker, b, lockName, one, two }) => {
      const written = await marker.advance({ from: undefined, to: one, ttl: TTL }, {});
      expect(written?.value).toBe(one);
      const other = b.client.store.marker(lockName);
      expect(other.key).toBe(marker.key);
      expect(await other.read({})).toMatchObject({ value: one, rank: written?.rank });
      const next = await other.advance({ from: written, to: two, ttl: TTL }, {});
      expect(next?.value).toBe(two);
      expect(await marker.read({})).toMatchObject({ value: two, rank: next?.rank });
    });

    markerTest('is not written if it has changed since it was read', async ({ marker, one, two, three }) => {
      const first = await marker.advance({ from: undefined, to: one, ttl: TTL }, {});
      const second = await marker.advance({ from: first, to: two, ttl: TTL }, {});
      for (const from of [undefined, first]) {
        const refused = await marker.advance({ from, to: three, ttl: TTL }, {});
        expect(refused).toMatchObject({ value: two, rank: second?.rank });
      }
      expect(await marker.read({})).toMatchObject({ value: two });
    });

    markerTest('is not created again if it has expired', async ({ marker, queue, one, two }) => {
      const first = await marker.advance({ from: undefined, to: one, ttl: TTL }, {});
      await queue.remove(marker.key);
      expect(await marker.advance({ from: first, to: two, ttl: TTL }, {})).toBeUndefined();
      expect(await marker.read({})).toBeUndefined();
    });

    markerTest(
      'of many clients that create it at once has the value of one of them',
      async ({ marker, b, lockName, one, two, three }) => {
        const other = b.client.store.marker(lockName);
        const values = [one, two, three, fresh('four')];
        const results = await Promise.all(
          values.map((to, i) => (i % 2 ? marker : other).advance({ from: undefined, to, ttl: TTL }, {})),
        );
        expect(new Set(results.map((result) => result?.value)).size).toBe(1);
        expect(values).toContain(results[0]?.value);
      },
    );

    markerTest.for([true, false])(
      'has been written by a call whose answer was lost: the same call says so (first write: %s)',
      async (isFirst, { marker, a, one, two }) => {
        const from = isFirst ? undefined : await marker.advance({ from: undefined, to: one, ttl: TTL }, {});
        loseNextAnswer(a.client, 'overwrite');
        const options = { from, to: two, ttl: TTL };
        await rejection(marker.advance(options, {}), EtcdConnectionFailed);
        expect(await marker.advance(options, {})).toMatchObject({ value: two });
        expect(await marker.read({})).toMatchObject({ value: two });
      },
    );

    markerTest('is removed, unless it has changed since it was read', async ({ marker, one, two }) => {
      const first = await marker.advance({ from: undefined, to: one, ttl: TTL }, {});
      const second = await marker.advance({ from: first, to: two, ttl: TTL }, {});
      if (!first || !second) throw new Error('the marker was not written');
      expect(await marker.remove(first, {})).toBe(false);
      expect(await marker.read({})).toMatchObject({ value: two });
      expect(await marker.remove(second, {})).toBe(true);
      expect(await marker.read({})).toBeUndefined();
      expect(await marker.remove(second, {})).toBe(false);
    });

    markerTest('expires if nobody writes it again', async ({ marker, one }) => {
      await marker.advance({ from: undefined, to: one, ttl: 1 }, {});
      expect(
        await until(
          () => marker.read({}),
          (read) => read === undefined,
        ),
      ).toBeUndefined();
    });

    markerTest(
      'is in no queue and in no listing, and is not waited for',
      async ({ marker, lockName, queue, a, one }) => {
        await marker.advance({ from: undefined, to: one, ttl: TTL }, {});
        expect(await queue.entries()).toEqual([]);
        const names = [...(await a.client.store.list()).keys()];
        expect(names.filter((name) => name.includes(lockName))).toEqual([]);
        expect(await a.locks.request(lockName, { ifAvailable: true }, (held) => held !== null)).toBe(true);
        expect(await marker.read({})).toMatchObject({ value: one });
      },
    );

    markerTest(
      'belongs to one name, also if another name begins with it',
      async ({ marker, lockName, queue, a, one }) => {
        const names = [`${lockName}/b`, `${lockName}%2Fb`, `${lockName}:b`, `${lockName}/b/ä?#%41`];
        const others = names.map((name) => a.client.store.marker(name));
        for (const other of others) cleanUp(other, queue);
        await marker.advance({ from: undefined, to: one, ttl: TTL }, {});
        const values = names.map(fresh);
        for (const [i, other] of others.entries())
          await other.advance({ from: undefined, to: values[i] ?? '', ttl: TTL }, {});
        expect(await marker.read({})).toMatchObject({ value: one });
        expect(await Promise.all(others.map((other) => other.read({})))).toMatchObject(
          values.map((value) => ({ value })),
        );
      },
    );
  });
}
