import { EtcdClient, EtcdKeysLeft, LockManager } from '../../../src/index.ts';
import { CLUSTER_NAME, type ClientPlan, PORT } from '../plan.ts';
import type { Report } from '../report.ts';
import { between, chance, pick, sleep, sleepUntil } from './chance.ts';
import { startJobs } from './once.ts';
import { Program, type ProgramOptions } from './program.ts';

/** Probability that a client is closed during the storm, with calls under way; another one follows it. */
const CLOSES_EARLY = 0.3;

/** When that happens, in milliseconds. */
const EARLY = [2000, 40_000] as const;

/** Makes calls until the storm is over, then takes each lock once more, and closes its client. */
export async function runProgram(options: ProgramOptions, report: Report): Promise<void> {
  for (let session = 1; await runSession(options, session, report); session += 1);
}

/** Uses one client. Returns whether it was closed early, so that another one follows. */
async function runSession(options: ProgramOptions, session: number, report: Report): Promise<boolean> {
  const { client: plan, api, endpoints, locks, user, generation, isCalm, isMoving } = options;
  const found = clientOptions(plan.finds, endpoints);
  const followMembers = plan.follows;
  const client = new EtcdClient({ ...found, followMembers, api, ...user, readTimeout: pick([2, 5, 60, 60]) });
  const label = `${plan.name} ${generation} ${session}.`;
  const manager = new LockManager(client, { ttl: plan.ttl, label });
  const program = new Program(client, { ...options, label }, report);
  const isOver = () => isCalm() || isMoving();
  const work = async (): Promise<void> => {
    const mayGoOn = () => !isOver() && !program.isClosed;
    while (mayGoOn()) {
      await sleep(pauseOf(plan));
      if (mayGoOn()) await program.call(program.choose());
    }
  };
  const jobs = plan.jobs && api !== 'both' ? startJobs(manager, report, sleep) : [];
  const endJobs = async (): Promise<void> => {
    await Promise.all(jobs.map((job) => job[Symbol.asyncDispose]()));
  };
  const close = async (): Promise<void> => {
    const closed = report.closes([`@${encodeURIComponent(label)}`, ...program.uuids]);
    try {
      await client.close({ timeout: 30 });
      closed();
    } catch (error) {
      // In a storm, perhaps no member could be reached.
      if (!(error instanceof EtcdKeysLeft) || isCalm()) report.unexpected('close', error);
    }
  };
  if (session === 1) await program.takeOver();
  const workers = Promise.all(Array.from({ length: plan.workers }, work));
  if (chance(CLOSES_EARLY)) {
    const { promise, cancel } = sleepUntil(between(...EARLY));
    await Promise.race([promise, workers]);
    cancel();
    if (!isOver()) {
      await program.endLocks();
      await close();
      await Promise.all([workers, endJobs()]);
      return true;
    }
  }
  await workers;
  await endJobs();
  for (const lock of isMoving() ? [] : locks) await program.request(lock, { timeout: 0 }, 'last request');
  await close();
  return false;
}

/** Returns the milliseconds until the next call. */
function pauseOf({ pause, beat }: ClientPlan): number {
  const ms = between(0, pause);
  if (beat === undefined) return ms;
  const now = performance.now();
  return Math.ceil((now + ms) / beat) * beat - now;
}

/** How the client finds the members. */
function clientOptions(finds: ClientPlan['finds'], endpoints: readonly string[]) {
  if (finds === 'SRV records') return { srvDomain: CLUSTER_NAME };
  return { endpoints: finds === 'name' ? [`http://${CLUSTER_NAME}:${PORT}`] : [...endpoints] };
}
