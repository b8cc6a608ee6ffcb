import { expect, onTestFinished } from 'vitest';
import { startPython } from '../../compat/python.ts';
import { EtcdConnectionFailed, EtcdLockExpired, Lock, LockManager } from '../../src/index.ts';
import type { V2Client } from '../../src/v2/client.ts';
import { gate } from '../support/gate.ts';
import { freshName, queueOn, type RawEntry, rejection, useClient } from '../support/locks.ts';
import { type Moment, moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import type { FaultCluster, FaultMember } from './fault-cluster.ts';
import type { RequestHead } from './tcp-proxy.ts';

export const OURS = ['Lock', 'LockManager.request'] as const;
export const KINDS = [...OURS, 'python-etcd'] as const;
export type Kind = (typeof KINDS)[number];

export interface Take {
  /** Members that the client knows, in order of preference. python-etcd gets the first one and asks it for the others. */
  readonly by: readonly FaultMember[];
  /** Seconds. */
  readonly ttl: number;
  /** Seconds; absent: no limit. */
  readonly timeout?: number;
}

/** A lock while it is held. */
export interface Taken {
  /** When the waiter was notified. */
  readonly at: Moment;
  readonly key: string;
  /** Aborts when the hold is lost. Never aborts for python-etcd, which does not notice a loss. */
  readonly signal: AbortSignal;
  /** Releases the lock. `LockManager.request` makes it reject if the hold was lost. */
  give(): Promise<void>;
}

/** Contenders for one lock of a cluster, each with its own client. Fails if two of them hold the lock at a time. */
export class Contest {
  readonly name = freshName();
  readonly #cluster: FaultCluster;
  readonly #clients: V2Client[] = [];
  readonly #holders = new Set<string>();

  constructor(cluster: FaultCluster) {
    this.#cluster = cluster;
  }

  /** Waits for the lock. `Lock` and `LockManager` renew their entries, python-etcd does not. */
  take(kind: Kind, options: Take): Promise<Taken> {
    const taken = this.#take(kind, options);
    // The caller awaits the promise later: until then a rejection is not unhandled.
    taken.catch(() => {});
    return taken;
  }

  /** Reads the queue in order, by quorum. */
  async queue(): Promise<RawEntry[]> {
    const { etcd } = await this.#cluster.leader();
    return queueOn(this.name, etcd.url);
  }

  async untilQueued(count: number): Promise<RawEntry[]> {
    return until(
      () => this.queue(),
      (queue) => queue.length === count,
    );
  }

  /** Resolves once the members have received `count` matching requests for this lock, earlier ones included. */
  async untilAsked(members: readonly FaultMember[], asks: (request: RequestHead) => boolean, count = 1): Promise<void> {
    const about = `/_locks/${this.name}`;
    await until(
      () =>
        members
          .flatMap(({ proxy }) => proxy.requests)
          .filter((request) => request.path.includes(about) && asks(request)).length,
      (asked) => asked >= count,
    );
  }

  /** Resolves once the first entry of the queue has been renewed or replaced. */
  async untilRenewed(): Promise<void> {
    const [before] = await this.queue();
    await until(
      () => this.queue(),
      ([first]) => first?.key !== before?.key || first?.modifiedIndex !== before?.modifiedIndex,
    );
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

  #take(kind: Kind, options: Take): Promise<Taken> {
    if (kind === 'Lock') return this.#byLock(options);
    return kind === 'python-etcd' ? this.#byPython(options) : this.#byManager(options);
  }

  async #byLock({ by, ttl, timeout = 0 }: Take): Promise<Taken> {
    const lock = new Lock(this.#client(by), this.name);
    await lock.acquire({ lockTtl: ttl, timeout, keepAlive: true });
    return this.#hold(lock.lockKey, lock.signal, () => release(lock));
  }

  #byManager({ by, ttl, timeout = 0 }: Take): Promise<Taken> {
    const locks = new LockManager(this.#client(by), { ttl, timeout });
    const leaving = gate();
    return new Promise((resolve, reject) => {
      const left = locks.request(this.name, async ({ key, signal }) => {
        const give = async () => {
          leaving.open();
          await left;
        };
        resolve(this.#hold(key, signal, give));
        await leaving.opened;
      });
      left.catch(reject);
    });
  }

  async #byPython({ by: [member], ttl }: Take): Promise<Taken> {
    if (member === undefined) throw new Error('python-etcd needs a member to connect to');
    const python = await startPython(member.url, { allowReconnect: true });
    onTestFinished(() => python.stop());
    const lock = await python.lock(this.name);
    await lock.acquire({ lockTtl: ttl });
    const { lockKey } = await lock.state();
    return this.#hold(lockKey ?? '', new AbortController().signal, () => lock.release());
  }

  #client(by: readonly FaultMember[]): V2Client {
    const client = useClient({ endpoints: by.map(({ url }) => url) });
    this.#clients.push(client);
    return client;
  }

  #hold(key: string, signal: AbortSignal, release: () => Promise<void>): Taken {
    if (this.#holders.size > 0) throw new Error(`${key} is held while ${[...this.#holders]} is still held`);
    this.#holders.add(key);
    const end = () => this.#holders.delete(key);
    signal.addEventListener('abort', end, { once: true });
    const give = () => {
      end();
      return release();
    };
    return { at: moment(), key, signal, give };
  }
}

/** Releases the lock. Ignores an unreachable etcd: the removal is then retried in the background. */
export async function release(lock: Lock): Promise<void> {
  await lock.release().catch((error) => {
    if (!(error instanceof EtcdConnectionFailed)) throw error;
  });
}

/** Matches long polls. */
export const isPoll = ({ path }: RequestHead): boolean => path.includes('wait=true');
export const isAppend = ({ method }: RequestHead): boolean => method === 'POST';
export const isRenewal = ({ method }: RequestHead): boolean => method === 'PUT';
export const isRemoval = ({ method }: RequestHead): boolean => method === 'DELETE';
