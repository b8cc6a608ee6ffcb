import type { OpenHeld } from '../../../src/manager/held.ts';
import type { HoldOptions } from '../../../src/manager/options.ts';
import type { ManagerTest, Process } from './managers.ts';

/** Options of requests that hold a lock by threes. */
export const THREE = { limit: 3, ttl: 600 } as const;

/** A process with a request for the lock. */
interface Contender {
  readonly process: Process;
  readonly holding: Promise<OpenHeld>;
}

/**
 * A test in which many processes queue up for the lock, one after the other. `prepare` is called with each process before it does.
 */
export const crowdTest = (test: ManagerTest) =>
  test.extend(
    'queueUp',
    ({ makeProcess, queue, lockName }) =>
      async (count: number, options: HoldOptions = THREE, prepare = (_: Process): void => {}) => {
        const contenders: Contender[] = [];
        const { length } = await queue.entries();
        while (contenders.length < count) {
          const process = await makeProcess();
          prepare(process);
          const holding = process.locks.acquire(lockName, { ...options, ifAvailable: false });
          // A test may end the request before it waits for its outcome.
          holding.catch(() => {});
          contenders.push({ process, holding });
          await queue.untilLength(length + contenders.length);
        }
        return contenders;
      },
  );
