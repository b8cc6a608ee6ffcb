import {
  type EtcdClient,
  EtcdLockHeld,
  EtcdValueError,
  type Held,
  type Lock,
  type OpenHeldLocks,
} from '../../../src/index.ts';
import type { Claim } from '../claim.ts';
import type { Api, CallKind, OtherCallKind } from '../plan.ts';
import type { Report } from '../report.ts';
import type { Call } from './call.ts';
import { chance, pick } from './chance.ts';
import { claimOf, claimOfLock } from './claim-of.ts';
import { isEvicted } from './expected.ts';
import { makeMistakes } from './mistakes.ts';

/** What the calls of a program work with. */
export interface Surroundings {
  readonly client: { readonly client: EtcdClient; readonly api: Api };
  readonly report: Report;
  /** Settles a call when `work` has its answer, or is over. */
  readonly settle: (
    what: string,
    timeout: number,
    work: (call: Call) => Promise<unknown>,
    isForSeveral?: boolean,
  ) => Promise<void>;
  /** Works under a lock until it is lost, or for some time. */
  readonly work: (held: Held, call: Call, terms?: Partial<Claim>) => Promise<void>;
  readonly newLock: (name: string, uuid?: string) => Lock;
  readonly sleep: (ms: number) => Promise<void>;
  readonly ttl: number;
}

/** An error of the user's own code. */
const own = (): Error => new Error('enough of it');

/** The lock with a limit. */
export const SEMAPHORE = 'lock1-limited';

/** Those that use a Lock. */
export const USE_LOCKS: readonly CallKind[] = ['adopt', 'acquireAgain', 'setUuid'];

/** Calls that are less common, by kind. */
export const OTHER_CALLS: Readonly<
  Record<OtherCallKind, (around: Surroundings, lock: string, timeout: number) => Promise<void>>
> = {
  identity: ({ settle, work, report }, lock, timeout) => {
    const what = `request ${lock} with an identity`;
    const terms = chance(0.2) ? { holdAtLeast: 2 * Math.random() } : {};
    const request = (call: Call): Promise<unknown> =>
      call.identified().request(lock, { timeout, ...terms }, async (held) => {
        call.settled('held');
        await work(held, call, terms);
      });
    return settle(what, timeout, (call) =>
      request(call).catch((error: unknown) => {
        if (report.hasNoEvictions && isEvicted(error)) report.unexpected(what, error);
        throw error;
      }),
    );
  },
  throws: ({ settle, work }, lock, timeout) =>
    settle(`request ${lock}, whose callback throws`, timeout, (call) =>
      call.manager.request(lock, { timeout }, async (held) => {
        call.settled('held');
        await work(held, call);
        throw own();
      }),
    ),
  otherLimit: ({ settle }, _, timeout) =>
    settle(`request ${SEMAPHORE} with another limit`, timeout, ({ settled, manager }) =>
      manager.request(SEMAPHORE, { limit: 3, timeout }, async () => settled('held')),
    ),
  query: ({ settle }, lock) =>
    settle('query', 0, ({ manager }) => manager.query(Math.random() < 0.5 ? lock : undefined)),
  observe: ({ settle, sleep }, lock) => {
    const stop = new AbortController();
    const ending = sleep(3000 * Math.random()).then(() => stop.abort(own()));
    return settle(`observe ${lock}-election`, 0, async ({ manager }) => {
      for await (const _ of manager.elect(`${lock}-election`).observe({ signal: stop.signal })) await sleep(1);
    }).then(() => ending);
  },
  acquireSeveral: async ({ settle, sleep, report }, lock, timeout) => {
    const names = [lock, 'lock1'].filter((name, i, all) => all.indexOf(name) === i);
    await settle(
      `acquire ${names}`,
      timeout,
      async ({ settled, manager }) => {
        const options = chance(0.2) ? { ifAvailable: true, timeout } : { timeout };
        const held: OpenHeldLocks | null = await manager.acquire(names, options);
        settled(held ? 'held' : 'not available');
        if (!held) return;
        const claims = names.map((name) => ({ ...claimOf(held.get(name)), isOneOfSeveral: true }));
        report.takesInOrder(claims);
        const holds = claims.map((claim) => report.hold(claim));
        held.signal.addEventListener('abort', () => {
          for (const hold of holds) hold.lost(held.signal.reason);
        });
        await sleep(500 * Math.random());
        for (const hold of holds) hold.ended();
        await settle(`release ${names}`, 0, () => (chance(0.5) ? held.release() : held[Symbol.asyncDispose]()));
      },
      true,
    );
  },
  adopt: async (around, lock, timeout) => {
    // As after a restart: the first object is never used again.
    const { newLock, settle, ttl } = around;
    const first = newLock(lock);
    let isQueued = false;
    await settle(`Lock.acquire ${lock}, to be adopted`, 5, async () => {
      await first.acquire({ blocking: false, lockTtl: ttl, timeout: 5 });
      isQueued = true;
    });
    if (isQueued) await hold(around, newLock(lock, first.uuid), timeout);
  },
  acquireAgain: async (around, lock, timeout) => {
    const { newLock, settle, ttl } = around;
    const held = newLock(lock);
    await settle(`Lock.acquire ${lock} without blocking`, 5, async () => {
      await held.acquire({ blocking: false, lockTtl: ttl, timeout: 5 });
    });
    await hold(around, held, timeout, { lockTtl: ttl + 3 });
  },
  setUuid: async (around, lock, timeout) => {
    const { newLock, settle, ttl } = around;
    const first = newLock(lock);
    const second = newLock(lock);
    await settle(`Lock.acquire ${lock}, for another uuid`, 5, async () => {
      await first.acquire({ blocking: false, lockTtl: ttl, timeout: 5 });
    });
    await settle(`Lock.setUuid ${lock}`, 0, () => second.setUuid(first.uuid).catch(ignoreExpired));
    await hold(around, second, timeout);
    await settle(`Lock.release ${lock}`, 0, () => first[Symbol.asyncDispose]());
  },
  survey: ({ settle, client, sleep }, lock) => {
    if (client.api === 'both') return Promise.resolve();
    const { surveyor } = client.client;
    const stop = new AbortController();
    const ending = sleep(2000 * Math.random()).then(() => stop.abort(own()));
    return settle(`survey ${lock}`, 0, async () => {
      surveyor.checkName(lock);
      surveyor.checkPrefix('lock');
      for await (const _ of surveyor.prune('', { dryRun: Math.random() < 0.5 })) await sleep(1);
      await surveyor.locks(lock.slice(0, lock.lastIndexOf('/') + 1));
      const survey = await surveyor.lock(lock);
      await surveyor.next(survey, { signal: stop.signal });
      await surveyor.nextChanges(pick([lock, undefined]), survey, { signal: stop.signal });
    }).then(() => ending);
  },
  release: async ({ settle, report, client }, lock) => {
    // The waiter may have become the holder when its entry is removed.
    const end = report.evicts(lock);
    await settle(`release the last entry of ${lock}`, 0, async ({ manager }) => {
      if (client.api !== 'both' && Math.random() < 0.5) {
        const { surveyor } = client.client;
        const last = (await surveyor.lock(lock)).queue.entries.at(-1);
        if (last) await surveyor.remove(last);
        return;
      }
      const { held, pending } = await manager.query(lock);
      const last = [...held, ...pending].at(-1);
      const { key = '', uuid = '' } = last ?? {};
      if (last) await manager.release(lock, uuid === '' || chance(0.5) ? { key } : { uuid }).catch(ignoreHeld);
    });
    end();
  },
  mistakes: ({ settle, client: { client } }, lock) =>
    settle('mistakes', 0, ({ manager }) => makeMistakes(manager, client, lock)),
  forceRelease: async ({ settle, report }, lock) => {
    const end = report.evicts(lock);
    await settle(`release ${lock} by force`, 0, ({ manager }) => manager.release(lock, { force: true }));
    end();
  },
};

/** Takes over a Lock of a process that was killed, by its uuid, and uses it. Resolves to whether it was acquired. */
export async function takeOver(
  around: Surroundings,
  { name, uuid, timeout }: { readonly name: string; readonly uuid: string; readonly timeout: number },
): Promise<boolean> {
  const lock = around.newLock(name, chance(0.5) ? uuid : undefined);
  if (lock.uuid !== uuid) {
    let isThere = false;
    await around.settle(`Lock.setUuid ${name}, of the process before`, 0, async () => {
      isThere = await lock.setUuid(uuid).then(() => true, ignoreExpired);
    });
    if (!isThere) return false;
  }
  return hold(around, lock, timeout, { isTakenOver: true });
}

/** The entry may have expired in between. */
function ignoreExpired(error: unknown): false {
  if (!(error instanceof EtcdValueError)) throw error;
  return false;
}

/** It may have become the holder in between. */
function ignoreHeld(error: unknown): void {
  if (!(error instanceof EtcdLockHeld)) throw error;
}

/** Waits for a lock, holds it for some time, and releases it. Resolves to whether it was acquired. */
async function hold(
  { settle, sleep, report, ttl }: Surroundings,
  lock: Lock,
  timeout: number,
  { lockTtl = ttl, ...terms }: { readonly lockTtl?: number } & Pick<Claim, 'isTakenOver'> = {},
): Promise<boolean> {
  const { name } = lock;
  let hasEntry = false;
  await settle(`Lock.acquire ${name}`, timeout, async ({ settled }) => {
    await lock.acquire({ lockTtl, keepAlive: true, timeout });
    settled('held');
    hasEntry = true;
    const held = report.hold({ ...claimOfLock(lock), ...terms });
    const { signal } = lock;
    signal.addEventListener('abort', () => held.lost(signal.reason));
    try {
      await sleep(500 * Math.random());
      await lock.isAcquired();
    } finally {
      held.ended();
    }
  });
  if (hasEntry) await settle(`Lock.release ${name}`, 0, () => lock.release());
  return hasEntry;
}
