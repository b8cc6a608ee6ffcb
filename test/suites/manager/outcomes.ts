import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, onTestFinished } from 'vitest';
import type { LockManager } from '../../../src/manager/manager.ts';
import type { RequestOutcome, RequestTrace } from '../../../src/manager/trace.ts';
import { aborted } from '../lock/locks.ts';
import { duringNext, failNextRemoval } from '../stores/interventions.ts';
import type { QueueView, StoreClient } from '../stores/store-client.ts';
import type { ManagerTest } from './managers.ts';

interface Scene {
  readonly lockName: string;
  readonly queue: QueueView;
  readonly client: StoreClient;
  readonly locks: LockManager;
}

const unreachable = () => expect.unreachable();

/** Counts the requests for a lock as a metric would. */
function gauges(lockName: string) {
  const counted = { waiting: 0, holding: 0, outcomes: [] as (RequestOutcome | undefined)[] };
  const on = (event: string, count: (trace: RequestTrace) => void): void => {
    const listener = (message: unknown) => {
      if ((message as RequestTrace).name === lockName) count(message as RequestTrace);
    };
    subscribe(`tracing:etcd-v2-lock:request:${event}`, listener);
    onTestFinished(() => void unsubscribe(`tracing:etcd-v2-lock:request:${event}`, listener));
  };
  on('start', () => {
    counted.waiting += 1;
  });
  on('held', () => {
    counted.waiting -= 1;
    counted.holding += 1;
  });
  on('outcome', ({ waited, outcome }) => {
    counted[waited === undefined ? 'waiting' : 'holding'] -= 1;
    counted.outcomes.push(outcome);
  });
  return counted;
}

/** Ways in which requests end, each with the outcomes in order. */
const endings: readonly (readonly [string, readonly RequestOutcome[], (scene: Scene) => Promise<unknown>])[] = [
  ['its callback returns', ['held'], ({ lockName, locks }) => locks.request(lockName, () => {})],
  [
    'its callback throws, even an error of a lock',
    ['held'],
    ({ lockName, locks }) =>
      locks.request(lockName, () => locks.request(`${lockName}-inner`, { signal: AbortSignal.abort() }, unreachable)),
  ],
  ['it releases the lock', ['held'], async ({ lockName, locks }) => (await locks.acquire(lockName)).release()],
  [
    'it releases the lock while etcd is down',
    ['held'],
    async ({ lockName, locks, client }) => {
      const held = await locks.acquire(lockName);
      failNextRemoval(client, new Error('etcd is down'));
      await held.release();
    },
  ],
  [
    'it is one of two terms of a campaign',
    ['held', 'held'],
    async ({ lockName, locks }) => {
      let terms = 0;
      for await (const _ of locks.elect(lockName).campaign()) {
        terms += 1;
        if (terms === 2) break;
      }
    },
  ],
  [
    'it ran under an outer hold',
    ['joined', 'held'],
    ({ lockName, locks }) => locks.request(lockName, () => locks.request(lockName, { reentrant: true }, () => {})),
  ],
  [
    'it may not run under a shared hold',
    ['error', 'held'],
    ({ lockName, locks }) =>
      locks.request(lockName, { mode: 'shared' }, () => locks.request(lockName, { reentrant: true }, unreachable)),
  ],
  [
    'the outer hold is lost before it begins',
    ['lost', 'lost'],
    ({ lockName, locks, queue }) =>
      locks.request(lockName, { ttl: 2 }, async ({ key, signal }) => {
        await queue.remove(key);
        await aborted(signal);
        await locks.request(lockName, { reentrant: true }, unreachable);
      }),
  ],
  [
    'the lock is taken',
    ['unavailable'],
    async ({ lockName, locks, queue }) => {
      await queue.put('holder');
      await locks.request(lockName, { ifAvailable: true }, () => {});
    },
  ],
  [
    'the lock is taken by its own process',
    ['unavailable', 'held'],
    async ({ lockName, locks }) => locks.request(lockName, () => locks.acquire(lockName, { ifAvailable: true })),
  ],
  [
    'the timeout passes in the queue',
    ['timeout'],
    async ({ lockName, locks, queue }) => {
      await queue.put('holder');
      await locks.acquire(lockName, { timeout: 0.5 });
    },
  ],
  [
    'the timeout passes inside its process',
    ['timeout', 'held'],
    async ({ lockName, locks }) => locks.request(lockName, () => locks.acquire(lockName, { timeout: 0.1 })),
  ],
  [
    'its signal aborts',
    ['aborted'],
    async ({ lockName, locks, queue, client }) => {
      await queue.put('holder');
      const abort = new AbortController();
      duringNext(client, 'append', () => abort.abort());
      await locks.request(lockName, { signal: abort.signal }, unreachable);
    },
  ],
  [
    'the lock is lost before it is released',
    ['lost'],
    ({ lockName, locks, queue }) =>
      locks.request(lockName, { ttl: 2 }, async ({ key, signal }) => {
        await queue.remove(key);
        await aborted(signal);
      }),
  ],
  [
    'the client is closed',
    ['error'],
    async ({ lockName, locks, queue, client }) => {
      await queue.put('holder');
      let closed: Promise<void> | undefined;
      duringNext(client, 'append', () => {
        closed = client.close();
      });
      await locks.request(lockName, unreachable).catch(() => {});
      await closed;
    },
  ],
];

export function outcomes(test: ManagerTest): void {
  describe('a request has exactly one outcome, after which no gauge counts it, if', () => {
    test.for(endings)('%s: %s', async ([, expected, play], { lockName, queue, makeProcess }) => {
      const counted = gauges(lockName);
      await play({ lockName, queue, ...(await makeProcess()) }).catch(() => {});
      expect(counted).toEqual({ waiting: 0, holding: 0, outcomes: expected });
    });

    test('the lock is lost, even if nobody releases it: lost', async ({ lockName, queue, a }) => {
      const counted = gauges(lockName);
      const held = await a.locks.acquire(lockName, { ttl: 2 });
      await queue.remove(held.key);
      await aborted(held.signal);
      const expected = { waiting: 0, holding: 0, outcomes: ['lost'] };
      expect(counted).toEqual(expected);
      await held.release();
      expect(counted).toEqual(expected);
    });
  });
}
