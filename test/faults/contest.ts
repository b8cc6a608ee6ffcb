import { expect, onTestFinished } from 'vitest';
import {
  EtcdClient,
  type EtcdClientOptions,
  EtcdConnectionFailed,
  EtcdKeysLeft,
  EtcdLockExpired,
  Lock,
  LockManager,
} from '../../src/index.ts';
import { gate } from '../support/gate.ts';
import { freshName, rejection } from '../support/locks.ts';
import { type Moment, moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import type { FaultCluster, FaultMember } from './fault-cluster.ts';
import type { ForeignHold, Purpose, QueuedKey } from './stores/store.ts';
import { STORE } from './stores/tested.ts';
import type { Request } from './tcp-proxy.ts';

export const OURS = ['Lock', 'LockManager.request'] as const;
/** The client that is not of this package: python-etcd on etcd v2, `etcdctl lock` on etcd v3. */
export const FOREIGN = STORE.foreign;
export const KINDS = [...OURS, FOREIGN] as const;
export type Kind = (typeof KINDS)[number];
/** Kinds whose requests the proxies can read: `etcdctl lock` uses HTTP/2. */
export const SEEN = STORE.api === 'v2' ? KINDS : OURS;

export interface Take {
  /** Members that the client knows, in order of preference. python-etcd only gets the first one, and asks it for the others. */
  readonly by: readonly FaultMember[];
  /** Seconds. */
  readonly ttl: number;
  /** Seconds; absent: no limit. */
  readonly timeout?: number;
  /** A client that knows these members already. Absent: a new one. */
  readonly client?: EtcdClient | undefined;
  /** Ends the wait of a client of this package. */
  readonly leave?: AbortSignal;
}

/** A contender that waits for the lock. The promise is wrapped in an object because `await` would wait for it. */
export interface Waiter {
  readonly taken: Promise<Taken>;
}

/** A lock while it is held. */
export interface Taken {
  /** When the waiter was notified. */
  readonly at: Moment;
  readonly key: string;
  /** The fencing token. */
  readonly token: bigint;
  /** Aborts when the hold is lost. Never aborts for a foreign client, which does not notice a loss. */
  readonly signal: AbortSignal;
  /** Releases the lock. `LockManager.request` makes it reject if the hold was lost. */
  give(): Promise<void>;
}

/** Contenders for one lock of a cluster, each with its own client. Fails if two of them hold the lock at a time. */
export class Contest {
  readonly name = freshName();
  readonly #cluster: FaultCluster;
  readonly #clients: EtcdClient[] = [];
  readonly #holders = new Set<string>();

  constructor(cluster: FaultCluster) {
    this.#cluster = cluster;
  }

  /** Waits for the lock. `Lock`, `LockManager` and `etcdctl lock` renew their entries, python-etcd does not. */
  take(kind: Kind, options: Take): Promise<Taken> {
    const taken = this.#take(kind, options);
    // The caller awaits the promise later: until then a rejection is not unhandled.
    taken.catch(() => {});
    return taken;
  }

  /**
   * Adds a waiter, and resolves once its first member has its poll. On a busy machine a client may turn to another member before
   * that: such a waiter leaves, and another one takes its place.
   */
  async wait(kind: Kind, options: Take): Promise<Waiter> {
    const [first, others] = [options.by.slice(0, 1), options.by.slice(1)];
    const pollsOf = (members: readonly FaultMember[]): number => this.#asked(members, isPoll);
    for (;;) {
      const leave = new AbortController();
      const before = { first: pollsOf(first), others: pollsOf(others) };
      const taken = this.take(kind, { ...options, leave: leave.signal });
      const served = await until(
        () => (pollsOf(first) > before.first ? 'first' : pollsOf(others) > before.others && 'other'),
        (by) => by !== false,
      );
      if (served === 'first') return { taken };
      leave.abort();
      await rejection(taken);
    }
  }

  /** Waits for the lock by a client that the test starts. */
  takeBy(take: (lock: string) => Promise<ForeignHold>): Promise<Taken> {
    const taken = take(this.name).then((held) => this.#holdForeign(held));
    taken.catch(() => {});
    return taken;
  }

  /** Returns a client whose next request is the append of an entry with this TTL. */
  async ready({ by, ttl }: Pick<Take, 'by' | 'ttl'>): Promise<EtcdClient> {
    const client = this.#client(by);
    await STORE.prepare(client, ttl);
    return client;
  }

  /** Reads the queue in order, by quorum. */
  async queue(): Promise<QueuedKey[]> {
    return STORE.queue(this.name, await this.#url());
  }

  async untilQueued(count: number): Promise<QueuedKey[]> {
    return until(
      () => this.queue(),
      (queue) => queue.length === count,
    );
  }

  /** Resolves once the members have received `count` matching requests for this lock, earlier ones included. */
  async untilAsked(members: readonly FaultMember[], asks: (request: Request) => boolean, count = 1): Promise<void> {
    await until(
      () => this.#asked(members, asks),
      (asked) => asked >= count,
    );
  }

  /** Resolves once the first entry of the queue has been renewed or replaced. */
  async untilRenewed(): Promise<void> {
    await STORE.untilRenewed(this.name, this.#cluster.members, () => this.#url());
  }

  /** Returns a function that matches the requests that renew the first entry of the queue. */
  async renewal(): Promise<(request: Request) => boolean> {
    return STORE.renewalOf(this.name, await this.#url());
  }

  /**
   * Gives the lock that `next` holds, and expects that a waiter of this kind, which has lost its entry, did not hold it before:
   * `Lock` has rejected, and `LockManager` has queued up again behind `next`.
   */
  async handOnAfterLoss(kind: (typeof OURS)[number], waiting: Promise<Taken>, next: Taken): Promise<void> {
    if (kind === 'Lock') {
      expect(await rejection(waiting)).toBeInstanceOf(EtcdLockExpired);
      expect(await this.queue()).toMatchObject([{ key: next.key }]);
      return next.give();
    }
    const [, again] = await this.untilQueued(2);
    await next.give();
    const held = await waiting;
    expect(held.key).toBe(again?.key);
    await held.give();
  }

  /** Closes all clients, and fails if a key is left. */
  async end(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
    expect(await this.queue()).toEqual([]);
  }

  /** Number of matching requests for this lock that the members have received. */
  #asked(members: readonly FaultMember[], asks: (request: Request) => boolean): number {
    const requests = members.flatMap(({ proxy }) => proxy.requests);
    return requests.filter((request) => asks(request) && STORE.isAbout(request, this.name)).length;
  }

  async #url(): Promise<string> {
    const { etcd } = await this.#cluster.leader();
    return etcd.url;
  }

  #take(kind: Kind, options: Take): Promise<Taken> {
    if (kind === 'Lock') return this.#byLock(options);
    return kind === 'LockManager.request' ? this.#byManager(options) : this.#byForeign(options);
  }

  async #byLock({ by, ttl, timeout = 0, client = this.#client(by), leave }: Take): Promise<Taken> {
    const lock = new Lock(client, this.name);
    await lock.acquire({ lockTtl: ttl, timeout, keepAlive: true, ...(leave && { signal: leave }) });
    const { lockKey: key, fencingToken: token, signal } = lock;
    return this.#hold({ key, token, signal }, () => release(lock));
  }

  #byManager({ by, ttl, timeout = 0, client = this.#client(by), leave }: Take): Promise<Taken> {
    const locks = new LockManager(client, { ttl, timeout });
    const leaving = gate();
    return new Promise((resolve, reject) => {
      const left = locks.request(
        this.name,
        { ...(leave && { signal: leave }) },
        async ({ key, fencingToken: token, signal }) => {
          const give = async () => {
            leaving.open();
            await left;
          };
          resolve(this.#hold({ key, token, signal }, give));
          await leaving.opened;
        },
      );
      left.catch(reject);
    });
  }

  async #byForeign({ by, ttl }: Take): Promise<Taken> {
    return this.#holdForeign(await STORE.takeForeign(this.name, by, ttl));
  }

  #holdForeign({ key, token, release }: ForeignHold): Taken {
    return this.#hold({ key, token, signal: new AbortController().signal }, release);
  }

  #client(by: readonly FaultMember[]): EtcdClient {
    const client = openClient({ endpoints: by.map(({ url }) => url) });
    this.#clients.push(client);
    return client;
  }

  #hold(held: Pick<Taken, 'key' | 'token' | 'signal'>, release: () => Promise<void>): Taken {
    const { key, signal } = held;
    if (this.#holders.size > 0) throw new Error(`${key} is held while ${[...this.#holders]} is still held`);
    this.#holders.add(key);
    const end = () => this.#holders.delete(key);
    signal.addEventListener('abort', end, { once: true });
    const give = () => {
      end();
      return release();
    };
    return { at: moment(), ...held, give };
  }
}

/** Releases the lock. Ignores an unreachable etcd: the removal is then retried in the background. */
export async function release(lock: Lock): Promise<void> {
  await lock.release().catch((error) => {
    if (!(error instanceof EtcdConnectionFailed)) throw error;
  });
}

/** Returns a client of the tested API; the end of the test closes it. */
export function openClient(options: Omit<EtcdClientOptions, 'api'>): EtcdClient {
  const client = new EtcdClient({ randomizeEndpoints: false, ...options, api: STORE.api });
  onTestFinished(() =>
    client.close({ timeout: 0 }).catch((error) => {
      if (!(error instanceof EtcdKeysLeft)) throw error;
    }),
  );
  return client;
}

const isFor =
  (purpose: Purpose) =>
  (request: Request): boolean =>
    STORE.purposeOf(request) === purpose;

/** Matches long polls and watches. */
export const isPoll = isFor('poll');
export const isAppend = isFor('append');
export const isRenewal = isFor('renewal');
export const isRemoval = isFor('removal');
export const isListing = isFor('listing');
