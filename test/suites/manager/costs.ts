import { describe, expect } from 'vitest';
import type { StoreClient } from '../stores/store-client.ts';
import { crowdTest, THREE } from './crowd.ts';
import type { ManagerTest } from './managers.ts';

/**
 * Tests what locks cost on etcd.
 * @param isEvent whether this answer to a wait reports a change
 */
export const costs =
  (isEvent: (answer: unknown) => boolean) =>
  (test: ManagerTest): void => {
    describe('a request for several free locks', () => {
      for (const count of [1, 2, 5])
        test(`takes ${count} of them in as many round trips, and releases them in one`, async ({ lockName, a }) => {
          const names = Array.from({ length: count }, (_, index) => `${lockName}-${index}`);
          // The first request of a client may need others, such as for a lease.
          await a.locks.request(names, () => {});
          const trips = tripsOf(a.client);
          const taken = await a.locks.request(names, () => trips());
          expect({ taken, all: trips() }).toEqual({ taken: count, all: count + 1 });
        });
    });

    describe('each release of a lock with a limit', () => {
      crowdTest(test)(
        'wakes the first waiter and at most the one behind it, however many wait',
        async ({ queueUp }) => {
          const woken = new Set<StoreClient>();
          const holders = await queueUp(3);
          const waiters = await queueUp(8, THREE, ({ client }) => {
            client.intercept(async ({ kind, send }) => {
              const answer = await send();
              if (kind === 'wait' && isEvent(answer)) woken.add(client);
              return answer;
            });
          });
          for (const which of [1, 0]) await (await holders[which]?.holding)?.release();
          for (const next of waiters.slice(0, 2)) await next.holding;
          await (await holders[2]?.holding)?.release();
          await waiters[2]?.holding;
          const isWoken = waiters.map(({ process }) => woken.has(process.client));
          expect(isWoken.slice(0, 3)).toEqual([true, true, true]);
          expect(isWoken.slice(4)).toEqual([false, false, false, false]);
          for (const { holding } of waiters) await (await holding).release();
        },
      );
    });
  };

/** Returns a function that counts the round trips of the client since this call: requests at the same time count as one. */
function tripsOf(client: StoreClient): () => number {
  let [trips, underWay] = [0, 0];
  client.intercept(async ({ send }) => {
    if (underWay === 0) trips += 1;
    underWay += 1;
    try {
      return await send();
    } finally {
      underWay -= 1;
    }
  });
  return () => trips;
}
