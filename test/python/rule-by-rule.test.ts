import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { EtcdLeaderElectionInProgress } from '../../src/errors.ts';
import {
  EtcdClusterIdChanged,
  EtcdException,
  EtcdInsufficientPermissions,
  EtcdLockExpired,
  Lock,
} from '../../src/index.ts';
import type { V2Client } from '../../src/v2/client.ts';
import type { Snapshot } from '../../src/v2/keys-api.ts';
import { freshName, nextWatch, queueOn, raw, rejection, untilQueued, useClient, useProxy } from '../support/locks.ts';
import { block } from '../support/managers.ts';
import { until } from '../support/until.ts';

/** Replaces the listing that comes with an append. A client requests one only after etcd has answered it before. */
async function onListing(client: V2Client, change: (listing: Snapshot) => Snapshot | undefined): Promise<void> {
  await client.members();
  const append = client.createInOrder.bind(client);
  client.createInOrder = async (...args) => {
    const appended = await append(...args);
    return { ...appended, listing: appended.listing.then((listing) => listing && change(listing)) };
  };
}

describe('validity', () => {
  test('is counted from when the append was sent, not from when it was answered', async () => {
    const client = useClient();
    const createInOrder = client.createInOrder.bind(client);
    client.createInOrder = async (...args) => {
      const change = await createInOrder(...args);
      // The answer arrives when most of the TTL has passed.
      await sleep(7000);
      return change;
    };
    const lock = new Lock(client, freshName());
    expect(await lock.acquire({ lockTtl: 10 })).toBe(true);
    await until(
      () => lock.signal.aborted,
      (aborted) => aborted,
    );
    expect((await raw('GET', lock.lockKey)).status).toBe(200);
  });
});

describe('a plain listing without our own entry', () => {
  test('is confirmed by a quorum read before the lock is reported lost', async () => {
    const client = useClient();
    const lock = new Lock(client, freshName());
    await lock.acquire();
    const get = client.get.bind(client);
    const asked: (boolean | undefined)[] = [];
    client.get = async (key, options) => {
      const snapshot = await get(key, options);
      asked.push(options?.quorum);
      return options?.quorum ? snapshot : { ...snapshot, node: { ...snapshot.node, nodes: [] } };
    };
    expect(await lock.acquire()).toBe(true);
    expect(asked).toEqual([false, true]);
  });

  test('is confirmed by a quorum read even if it came with the append', async () => {
    const client = useClient();
    await onListing(client, (snapshot) => ({ ...snapshot, node: { ...snapshot.node, nodes: [] } }));
    const get = vi.spyOn(client, 'get');
    expect(await new Lock(client, freshName()).acquire()).toBe(true);
    expect(get.mock.calls.map(([, options]) => options?.quorum)).toEqual([true]);
  });
});

describe('an append without a listing', () => {
  test('is followed by a separate request for the listing', async () => {
    const client = useClient();
    await onListing(client, () => undefined);
    const get = vi.spyOn(client, 'get');
    expect(await new Lock(client, freshName()).acquire()).toBe(true);
    expect(get.mock.calls.map(([, options]) => options?.quorum)).toEqual([false]);
  });
});

describe('a listing that comes too late', () => {
  // The event loop is blocked until the deadline has passed, so that the timer of the lease cannot fire.
  test('is not trusted, even if our entry is the first', async () => {
    const client = useClient();
    const lock = new Lock(client, freshName());
    await lock.acquire({ lockTtl: 2 });
    const get = client.get.bind(client);
    client.get = async (...args) => {
      const snapshot = await get(...args);
      block(2.5);
      return snapshot;
    };
    expect(await rejection(lock.acquire({ lockTtl: 2 }))).toBeInstanceOf(EtcdLockExpired);
    expect(lock.isTaken).toBe(false);
  });

  test('is not trusted, even if it came with the append', async () => {
    const client = useClient();
    const lock = new Lock(client, freshName());
    await onListing(client, (snapshot) => {
      block(2.5);
      return snapshot;
    });
    expect(await rejection(lock.acquire({ lockTtl: 2 }))).toBeInstanceOf(EtcdLockExpired);
    expect(lock.isTaken).toBe(false);
  });
});

describe('a wait', () => {
  test.each([
    [{ lockTtl: 6 }, 2],
    [{ lockTtl: 3600 }, 20],
    [{ lockTtl: null }, 20],
  ])('with %j polls for %d seconds: a third of its TTL, at most 20', async (options, seconds) => {
    const name = freshName();
    await new Lock(useClient(), name).acquire();
    const client = useClient();
    const watch = client.watch.bind(client);
    const abort = new AbortController();
    const timeouts: unknown[] = [];
    client.watch = (key, watching) => {
      timeouts.push(watching?.timeout);
      abort.abort();
      return watch(key, watching);
    };
    await rejection(new Lock(client, name).acquire({ ...options, signal: abort.signal }));
    expect(timeouts).toEqual([seconds]);
  });

  test('continues after code 300 and after a missing leader', async () => {
    const name = freshName();
    const owner = new Lock(useClient(), name);
    await owner.acquire();
    const client = useClient();
    const get = client.get.bind(client);
    const errors = [
      new EtcdException('Raft Internal Error', { errorCode: 300, httpStatus: 500 }),
      new EtcdLeaderElectionInProgress('During Leader Election', { errorCode: 301 }),
    ];
    let released = false;
    client.get = async (key, options) => {
      const error = released ? errors.shift() : undefined;
      if (error) throw error;
      return get(key, options);
    };
    const watching = nextWatch(client);
    const waiting = new Lock(client, name).acquire({ timeout: 20 });
    await watching;
    released = true;
    await owner.release();
    expect(await waiting).toBe(true);
    expect(errors).toEqual([]);
  });

  test('ends with any other error, and leaves no key', async () => {
    const name = freshName();
    const owner = new Lock(useClient(), name);
    await owner.acquire();
    const client = useClient();
    const refused = new EtcdInsufficientPermissions('no', { httpStatus: 401 });
    const watch = client.watch.bind(client);
    client.watch = async (key, options) => {
      await watch(key, options);
      throw refused;
    };
    const watching = nextWatch(client);
    const failed = rejection(new Lock(client, name).acquire());
    await watching;
    await owner.release();
    expect(await failed).toBe(refused);
    expect(await queueOn(name)).toEqual([]);
  });
});

describe('a renewal attempt', () => {
  test('fails over to the next member before the lease ends, even when a held lock is acquired again', async () => {
    const silent = await useProxy();
    const good = await useProxy();
    const name = freshName();
    const lock = new Lock(useClient({ endpoints: [silent.url, good.url] }), name);
    await lock.acquire({ lockTtl: 6, keepAlive: true });
    const { lockKey, signal } = lock;
    silent.intercept(() => ({ silent: true }));
    expect(await lock.acquire({ lockTtl: 6, keepAlive: true })).toBe(true);
    expect(lock.lockKey).toBe(lockKey);
    const { modifiedIndex } = (await raw('GET', lockKey)).body.node;
    await until(
      () => raw('GET', lockKey),
      ({ body }) => body.node.modifiedIndex > modifiedIndex,
    );
    expect(signal.aborted).toBe(false);
    await lock.release();
  });
});

describe('on one object', () => {
  test('setUuid waits for an acquire under way, but reads do not', async () => {
    const name = freshName();
    const owner = new Lock(useClient(), name);
    await owner.acquire();
    const lock = new Lock(useClient(), name);
    const { uuid } = lock;
    const waiting = lock.acquire();
    await untilQueued(name, 2);
    const adopted = rejection(lock.setUuid(owner.uuid));
    const queue = await lock.contenders();
    expect(queue.map(({ value }) => value)).toEqual([owner.uuid, uuid]);
    expect(await lock.isAcquired()).toBe(false);
    expect(lock.uuid).toBe(uuid);
    await raw('POST', `/_locks/${name}`, { value: 'behind' });
    await owner.release();
    expect(await waiting).toBe(true);
    // The owner of that uuid has released its entry by now.
    expect(await adopted).toHaveProperty('message', 'Inexistent UUID');
    expect(await lock.isAcquired()).toBe(true);
  });
});

describe('an append whose answer from one of two members was lost', () => {
  test('is found on the other member and not repeated there', async () => {
    const first = await useProxy();
    const second = await useProxy();
    const name = freshName();
    const lock = new Lock(useClient({ endpoints: [first.url, second.url] }), name);
    first.intercept(({ method }) => (method === 'POST' ? { swallow: true } : undefined));
    expect(await lock.acquire({ timeout: 20 })).toBe(true);
    expect(second.requests.map(({ method }) => method)).not.toContain('POST');
    expect(await queueOn(name)).toMatchObject([{ value: lock.uuid }]);
    await lock.release();
  });
});

describe('closing', () => {
  test('reads the queue once more for the key of an unanswered append, and ends', async () => {
    const proxy = await useProxy();
    const name = freshName();
    const client = useClient({ endpoints: proxy.url });
    const lock = new Lock(client, name);
    // The append is never carried out.
    const off = proxy.intercept(({ method }) => (method === 'POST' ? { refuse: true } : undefined));
    await rejection(lock.acquire({ timeout: 0.3 }));
    off();
    const reads = () => proxy.requests.filter(({ query }) => query.get('quorum')).length;
    const before = reads();
    await until(reads, (count) => count >= before + 3);
    await client.close();
    expect(await queueOn(name)).toEqual([]);
  });

  test('retries a removal that keeps failing', async () => {
    const proxy = await useProxy();
    const name = freshName();
    const client = useClient({ endpoints: proxy.url });
    const lock = new Lock(client, name);
    await lock.acquire();
    let left = 5;
    const removals = () => proxy.requests.filter(({ method }) => method === 'DELETE').length;
    proxy.intercept(({ method }) => {
      if (method !== 'DELETE' || left === 0) return undefined;
      left -= 1;
      return { refuse: true };
    });
    await rejection(lock.release());
    await until(removals, (count) => count >= 3);
    await client.close();
    expect(await queueOn(name)).toEqual([]);
  });
});

describe('a cluster with another id than the expected one', () => {
  test('is refused at the first answer', async () => {
    const error = await rejection(new Lock(useClient({ expectedClusterId: 'deadbeef' }), freshName()).acquire());
    expect(error).toBeInstanceOf(EtcdClusterIdChanged);
    expect(error).toHaveProperty('message', expect.stringContaining('deadbeef'));
  });
});
