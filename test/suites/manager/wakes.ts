import { describe, expect } from 'vitest';
import type { StoreClient } from '../stores/store-client.ts';
import { crowdTest, THREE } from './crowd.ts';
import type { ManagerTest } from './managers.ts';

/**
 * Tests what waiters of a lock with a limit cost.
 * @param isEvent whether this answer to a wait reports a change
 */
export const wakes =
  (isEvent: (answer: unknown) => boolean) =>
  (test: ManagerTest): void => {
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
