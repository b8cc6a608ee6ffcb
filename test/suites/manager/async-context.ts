import { describe, expect } from 'vitest';
import { EtcdConnectionFailed, EtcdLockLost, EtcdLockTimeout } from '../../../src/errors.ts';
import type { Held, OpenHeld } from '../../../src/manager/held.ts';
import type { HeldLocks } from '../../../src/manager/held-locks.ts';
import type { HoldOptions } from '../../../src/manager/options.ts';
import { rejection } from '../../support/clients.ts';
import { debugOutput } from '../../support/debug-output.ts';
import { flow, followEvents, type UserCall } from '../../support/flows.ts';
import { gate } from '../../support/gate.ts';
import { next } from '../../support/iterators.ts';
import { until } from '../../support/until.ts';
import { aborted } from '../lock/locks.ts';
import { failRenewals } from '../stores/interventions.ts';
import type { ManagerTest, Process } from './managers.ts';

/** What a flow holds until `end()`. */
interface Holding {
  readonly held: Pick<Held, 'signal' | 'expiresIn'>;
  readonly all: readonly Pick<Held, 'name' | 'key'>[];
  end(): Promise<unknown>;
}

type WayToHold = (process: Process, name: string, options: HoldOptions) => Promise<Holding>;

/** Makes a request whose callback lasts until `end()`. The request may lose its locks. */
function inCallback<H extends Holding['held']>(
  request: (callback: (held: H) => Promise<void>) => Promise<void>,
  allOf: (held: H) => Holding['all'],
): Promise<Holding> {
  return new Promise((resolve, reject) => {
    const done = gate();
    const ended = request((held) => {
      const end = () => {
        done.open();
        return ended;
      };
      resolve({ held, all: allOf(held), end });
      return done.opened;
    }).catch((error) => {
      if (!(error instanceof EtcdLockLost)) reject(error);
    });
  });
}

/** Every way to hold locks with a manager. The names of the locks begin with `name`. */
const WAYS: Readonly<Record<string, WayToHold>> = {
  request: ({ locks }, name, options) =>
    inCallback<Held>(
      (callback) => locks.request(name, { ...options, ifAvailable: false }, callback),
      (held) => [held],
    ),
  'request-several': ({ locks }, name, options) =>
    inCallback<HeldLocks>(
      (callback) => locks.request([`${name}-1`, `${name}-2`], { ...options, ifAvailable: false }, callback),
      ({ all }) => all,
    ),
  acquire: async ({ locks }, name, options) => {
    const held = await locks.acquire(name, { ...options, ifAvailable: false });
    return { held, all: [held], end: () => held.release() };
  },
  'acquire-several': async ({ locks }, name, options) => {
    const held = await locks.acquire([`${name}-1`, `${name}-2`], { ...options, ifAvailable: false });
    return { held, all: held.all, end: () => held.release() };
  },
  campaign: async ({ locks }, name, { ttl }) => {
    const campaign = locks.elect(name, { ttl }).campaign();
    const term = await next(campaign);
    return { held: term, all: [term], end: () => campaign.return() };
  },
};

/** Holds locks in every way, each in a flow of its own, after another flow. Records each call of user code. */
async function holdInEveryWay(process: Process, calls: UserCall[], lockName: string, options: HoldOptions) {
  // Opens the connections, and on etcd v3 begins to watch for losses.
  const other = await flow.run('other', () => process.locks.acquire(`${lockName}-other`, { ttl: 60 }));
  const holdings = await Promise.all(
    Object.entries(WAYS).map(async ([way, hold]) => {
      const lock = `${lockName}-${way}`;
      const holding = await flow.run(way, () => hold(process, lock, options));
      holding.held.signal.addEventListener('abort', () => calls.push({ what: 'abort', lock, flow: flow.getStore() }));
      return { way, ...holding };
    }),
  );
  const end = () =>
    flow.run('ending', () => Promise.all([...holdings, { end: other.release }].map((one) => one.end())));
  return { holdings, end };
}

/** Expects that each call ran in the flow that made the request, and that there was a call of each of these kinds for each way. */
function expectOwnFlows(
  lockName: string,
  calls: readonly UserCall[],
  kinds: readonly string[],
  ways = Object.keys(WAYS),
) {
  const wayOf = (lock: string) => lock.slice(lockName.length + 1).replace(/-\d$/, '');
  expect(calls.filter((call) => call.flow !== wayOf(call.lock))).toEqual([]);
  for (const way of ways) {
    const seen = calls.filter(({ lock }) => wayOf(lock) === way).map(({ what }) => what);
    expect(seen, way).toEqual(expect.arrayContaining([...kinds]));
  }
}

/** Whether the option `maxHold` applies to locks that are held in this way. */
const hasMaxHold = (way: string): boolean => way !== 'campaign';

const untilLost = (holdings: readonly Holding[]) => Promise.all(holdings.map(({ held }) => aborted(held.signal)));

/** Events of a hold that is lost. */
const onLoss = ['start', 'wait', 'held', 'abort', 'lost', 'outcome', 'released'];

export function asyncContext(test: ManagerTest): void {
  const flowsTest = test.extend('calls', ({ lockName, onTestFinished }) => followEvents(lockName, onTestFinished));

  describe.concurrent('listeners run in the async context of their request', () => {
    flowsTest('when its entry is removed', async ({ lockName, calls, observer, a }) => {
      const { holdings, end } = await holdInEveryWay(a, calls, lockName, { ttl: 9 });
      for (const { name, key } of holdings.flatMap(({ all }) => all)) await observer.view(name).remove(key);
      await untilLost(holdings);
      await end();
      expectOwnFlows(lockName, calls, onLoss);
    });

    flowsTest('when etcd is down', async ({ lockName, calls, a }) => {
      const { holdings, end } = await holdInEveryWay(a, calls, lockName, { ttl: 6 });
      failRenewals(a.client, new EtcdConnectionFailed('etcd is down'));
      await untilLost(holdings);
      await end();
      expectOwnFlows(lockName, calls, onLoss);
    });

    flowsTest('when its maxHold has passed', async ({ lockName, calls, a }) => {
      const { holdings, end } = await holdInEveryWay(a, calls, lockName, { maxHold: 0.3 });
      await untilLost(holdings.filter(({ way }) => hasMaxHold(way)));
      await end();
      expectOwnFlows(lockName, calls, onLoss, Object.keys(WAYS).filter(hasMaxHold));
    });

    flowsTest('when its client is closed', async ({ lockName, calls, a }) => {
      const { holdings, end } = await holdInEveryWay(a, calls, lockName, {});
      const closed = flow.run('closing', () => a.client.close({ timeout: 60 }));
      await untilLost(holdings);
      await end();
      await closed;
      expectOwnFlows(lockName, calls, onLoss);
    });

    flowsTest('when it is renewed or not, and released by another flow', async ({ lockName, calls, a }) => {
      const { end } = await holdInEveryWay(a, calls, lockName, { ttl: 9 });
      // Not of each lock: a busy machine may lose one before its renewal.
      const untilSome = (event: string) =>
        until(
          () => calls.some(({ what }) => what === event),
          (isSeen) => isSeen,
        );
      await untilSome('renewed');
      failRenewals(a.client, new EtcdConnectionFailed('etcd is down'));
      await untilSome('renewal-failed');
      await end();
      expectOwnFlows(lockName, calls, ['start', 'wait', 'queued', 'held', 'released', 'outcome']);
    });

    flowsTest('while it waits behind others, whoever ends its wait', async ({ lockName, calls, queue, a }) => {
      const own = (who: string, work: () => Promise<unknown>) => flow.run(who, work);
      const made: string[] = [];
      const request = (who: string, options: HoldOptions = {}) => {
        made.push(who);
        return own(who, () => a.locks.request(lockName, options, () => expect(flow.getStore()).toBe(who)));
      };
      const holder = await own('holder', () => a.locks.acquire(lockName, { maxHold: 0.3 }));
      const abort = new AbortController();
      const waiting = [
        rejection(request('late', { timeout: 0.4 }), EtcdLockTimeout),
        request('aborted', { signal: abort.signal }).catch((error) => expect(error).toBe('reason')),
        request('next'),
        request('last'),
      ];
      await waiting[0];
      flow.run('aborting', () => abort.abort('reason'));
      await waiting[1];
      await own('ending', () => (holder as { release(): Promise<unknown> }).release());
      await Promise.all(waiting);
      expect(await queue.entries()).toEqual([]);
      const outcomes = calls.filter(({ what }) => what === 'outcome').map((call) => call.flow);
      expect(outcomes).toEqual(['holder', 'late', 'aborted', 'next', 'last']);
      expect(calls.filter((call) => !['holder', ...made].includes(call.flow ?? ''))).toEqual([]);
    });
  });

  flowsTest('listeners run there if another flow notices the loss first', async ({ lockName, calls, a }) => {
    const { holdings, end } = await holdInEveryWay(a, calls, lockName, { maxHold: 0.3 });
    const limited = holdings.filter(({ way }) => hasMaxHold(way)).map(({ held }) => held);
    // Block the event loop, so that no timer fires. `expiresIn()` is read before the clock.
    const left = 1000 * Math.max(...limited.map((held) => held.expiresIn()));
    const until = performance.now() + left + 1;
    while (performance.now() < until);
    flow.run('noticing', () => {
      for (const held of limited) held.expiresIn();
    });
    expect(limited.filter(({ signal }) => !signal.aborted)).toEqual([]);
    await end();
    expectOwnFlows(lockName, calls, onLoss, Object.keys(WAYS).filter(hasMaxHold));
  });

  test('a request does not remove the entry of the previous hold as a part of itself', async ({
    lockName,
    queue,
    a,
  }) => {
    const held = await flow.run('first', () => a.locks.acquire(lockName));
    const removals: (string | undefined)[] = [];
    let refused = false;
    a.client.intercept(({ kind, send }) => {
      if (kind === 'remove') removals.push(flow.getStore());
      // On a store where the next entry can replace this one, it then does not.
      if (kind !== 'append' || refused) return send();
      refused = true;
      return Promise.reject(new EtcdConnectionFailed('refused'));
    });
    const second = flow.run('second', () => a.locks.request(lockName, () => [...removals]));
    await flow.run('releasing', () => held.release());
    expect(await second).toEqual(['releasing']);
    expect(await queue.entries()).toEqual([]);
  });

  test('a line of the log that names a lock is not written in the flow of another', async ({
    lockName,
    observer,
    a,
  }) => {
    const who = ['one', 'two'] as const;
    const lines: { readonly line: string; readonly flow: string | undefined }[] = [];
    const work = async () => {
      const holds: OpenHeld[] = [];
      for (const name of who)
        holds.push(await flow.run(name, () => a.locks.acquire(`${lockName}-${name}`, { ttl: 6 })));
      await Promise.all(
        holds.map(async ({ name, key, signal, release }) => {
          await observer.view(name).remove(key);
          await aborted(signal);
          await release();
        }),
      );
    };
    await debugOutput(work, (line) => lines.push({ line, flow: flow.getStore() }));
    for (const name of who) {
      const own = lines.filter(({ line }) => line.includes(`${lockName}-${name}`));
      expect(own.filter((each) => each.flow !== name && each.flow !== undefined)).toEqual([]);
      const losses = own.filter(({ line }) => line.includes(' is lost: '));
      expect(losses.map((each) => each.flow)).toEqual([name]);
    }
  });

  describe('a listener that calls request() with reentrant', () => {
    test('waits for another flow that is inside the lock', async ({ lockName, observer, a, b }) => {
      const [inside, done] = [gate(), gate()];
      // Inside the lock, flow 1 opens the connections of the other client, and on etcd v3 its watch for losses.
      const first = a.locks.request(lockName, async () => {
        await using _ = await b.locks.acquire(`${lockName}-first`);
        inside.open();
        await done.opened;
      });
      await inside.opened;
      const held = await b.locks.acquire(`${lockName}-second`, { ttl: 6 });
      const second = new Promise<EtcdLockTimeout>((resolve) => {
        held.signal.addEventListener('abort', () => {
          const request = a.locks.request(lockName, { reentrant: true, timeout: 0.2 }, () => {});
          resolve(rejection(request, EtcdLockTimeout));
        });
      });
      await observer.view(held.name).remove(held.key);
      expect((await second).message).not.toContain('inside the callback');
      done.open();
      await first;
      await a.locks.request(lockName, { reentrant: true }, () => {});
      await held.release();
    });
  });
}
