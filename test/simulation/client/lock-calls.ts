import { type EtcdClient, Lock } from '../../../src/index.ts';
import type { HoldReport, Report } from '../report.ts';
import type { Call } from './call.ts';
import { between, chance, pick, sleep } from './chance.ts';
import { claimOfLock } from './claim-of.ts';
import { looking } from './looking.ts';

/** What calls of a Lock work with. */
export interface LockSurroundings {
  readonly client: EtcdClient;
  readonly report: Report;
  /** Settles a call when `work` has the lock, or is over. */
  readonly settle: (what: string, timeout: number, work: (call: Call) => Promise<unknown>) => Promise<void>;
  /** Works under a lock until it is lost, or for some time. */
  readonly until: (signal: AbortSignal, hold: HoldReport, context: unknown) => Promise<void>;
  readonly lockTtl: number;
  readonly shortTtl: number;
  readonly isClosed: () => boolean;
  /** Called with the uuid of each Lock. */
  readonly onLock: (uuid: string) => void;
  /** Called when nobody uses a Lock any more. */
  readonly onDropped: (uuid: string) => void;
}

interface LockCall {
  readonly name: string;
  readonly timeout: number;
  readonly blocking: boolean;
}

/** Seconds: a Lock does not tell for how long it is still held. */
const A_MOMENT = 0.001;

/** Maximum TTL in seconds with which a Lock is held until it ends: the calm must be long enough for all of them. */
const LONGEST = 6;

/** Seconds by which a hold without renewals lasts longer if its Lock is acquired again. */
const LONGEST_AGAIN = 5;

/** Acquires a Lock and releases it, perhaps several times. */
export async function useLock(around: LockSurroundings, call: LockCall): Promise<void> {
  const { client, isClosed, onLock, onDropped } = around;
  let lock = new Lock(client, call.name);
  onLock(lock.uuid);
  for (let left = pick([1, 2, 3]); left > 0 && !isClosed(); left -= 1) {
    // One that gives up soon tries again at once.
    await useOnce(around, lock, { ...call, timeout: left > 1 ? pick([call.timeout, 1]) : call.timeout });
    // Perhaps its release is not carried out yet.
    if (chance(0.5)) lock = new Lock(client, call.name, { uuid: lock.uuid });
  }
  onDropped(lock.uuid);
}

async function useOnce(around: LockSurroundings, lock: Lock, { name, timeout, blocking }: LockCall): Promise<void> {
  const { settle, report, until, lockTtl, shortTtl } = around;
  // As python-etcd: whoever does not renew holds for a TTL at most.
  const keepAlive = chance(0.6);
  const isAgain = chance(0.3);
  let hasEntry = false;
  let hold: HoldReport | undefined;
  await settle(
    `Lock.acquire ${name} ${JSON.stringify({ timeout, blocking })}`,
    timeout,
    async ({ since, settled, context }) => {
      const isHeld = await lock.acquire({ timeout, blocking, lockTtl, keepAlive });
      settled(isHeld ? 'held' : 'not available');
      hasEntry = true;
      if (!isHeld) return;
      const { signal } = lock;
      const maxHold = keepAlive ? undefined : lockTtl + (isAgain ? LONGEST_AGAIN : 0);
      const held = report.hold({ ...claimOfLock(lock), since, maxHold });
      hold = held;
      const look = () => held.isValidFor(lock.isTaken ? A_MOMENT : 0);
      await looking(look, async () => {
        const ttl = keepAlive ? pick([shortTtl, shortTtl, lockTtl]) : lockTtl;
        if (isAgain) await acquireAgain(lock, { lockTtl: ttl, keepAlive }, signal, held);
        if (!keepAlive && lockTtl <= LONGEST && chance(0.4)) await untilLost(signal, held);
        else await until(signal, held, context);
      });
    },
  );
  hold?.ended();
  if (hasEntry) await settle(`Lock.release ${name}`, 0, () => lock.release());
}

/** Holds a Lock that is not renewed for as long as it says that it is held. */
async function untilLost(signal: AbortSignal, hold: HoldReport): Promise<void> {
  if (signal.aborted) return hold.lost();
  await new Promise<void>((resolve) => {
    // At once: whoever looks next must find that it has been told.
    signal.addEventListener('abort', () => {
      hold.lost();
      resolve();
    });
  });
}

/** Acquires a Lock that is held once more, perhaps with a shorter TTL, and perhaps by two calls at once. */
async function acquireAgain(
  lock: Lock,
  options: { readonly lockTtl: number; readonly keepAlive: boolean },
  signal: AbortSignal,
  hold: HoldReport,
): Promise<void> {
  signal.addEventListener('abort', () => hold.lost(signal.reason));
  await sleep(between(0, 300));
  const acquire = () => lock.acquire({ timeout: 4, ...options });
  if (!signal.aborted) await Promise.all(chance(0.2) ? [acquire(), acquire()] : [acquire()]);
}
