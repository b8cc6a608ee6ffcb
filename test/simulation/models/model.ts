import { between, pick, sleep } from '../client/chance.ts';
import type { Network } from '../network/network.ts';
import type { Api, ClientPlan } from '../plan.ts';
import type { Report } from '../report.ts';
import type { Process } from '../virtual/process.ts';

/** What the program of a model gets. */
export interface ModelOptions {
  readonly client: ClientPlan;
  readonly process: Process;
  readonly network: Network;
  readonly api: Api;
  readonly endpoints: readonly string[];
  readonly locks: readonly string[];
  /** Whether the storm is over. */
  readonly isCalm: () => boolean;
  readonly report: Report;
}

/** Milliseconds between two tries to get a lock when the storm is over. */
const RETRY = 500;

/** Takes locks until the storm is over, then each lock once more. `cycle` takes a lock, and returns whether it had it. */
export async function takeLocks(
  { client, locks, isCalm }: ModelOptions,
  cycle: (lock: string) => Promise<boolean>,
): Promise<void> {
  const work = async (): Promise<void> => {
    while (!isCalm()) {
      await sleep(between(0, client.pause));
      if (!isCalm()) await cycle(pick(locks));
    }
  };
  await Promise.all(Array.from({ length: client.workers }, work));
  for (const lock of locks) while (!(await cycle(lock))) await sleep(RETRY);
}
