import { type Execute, PythonError, type V2Node } from './python-client.ts';

export interface PythonLockOptions {
  readonly execute: Execute;
  /** The directory of its queue. */
  readonly path: string;
  readonly uuid: string;
  readonly now: () => number;
}

export interface PythonAcquireOptions {
  readonly blocking?: boolean;
  /** Seconds; null: the key does not expire. */
  readonly ttl: number | null;
}

/** Milliseconds by which the clocks of two members, or of a member and a process, may differ. */
const CLOCKS = 300;

/** Milliseconds before a failed wait begins again. python-etcd waits only for its log, but a simulation must not spin. */
const LOGGING = 100;

/** `Lock` of python-etcd 0.4.5: the methods have its names and its order of requests. */
export class PythonLock {
  readonly #execute: Execute;
  readonly #path: string;
  readonly #uuid: string;
  readonly #now: () => number;
  #sequence: string | undefined;
  #isTaken = false;
  #expires: number | undefined;

  constructor({ execute, path, uuid, now }: PythonLockOptions) {
    this.#execute = execute;
    this.#path = path;
    this.#uuid = uuid;
    this.#now = now;
  }

  /** The sequence number of its key. */
  get sequence(): bigint {
    return BigInt(this.#sequence ?? 0);
  }

  /**
   * Whether its key may have expired: its TTL has passed since the append, or since the last renewal that was answered while the key was
   * surely there. A later renewal changes nothing: it creates the key again under the old number, while another client may hold the lock.
   */
  get isOverdue(): boolean {
    return this.#expires !== undefined && this.#now() >= this.#expires;
  }

  async isAcquired(): Promise<boolean> {
    if (!this.#isTaken) return false;
    this.#isTaken = await this.#exists(this.#lockKey);
    return this.#isTaken;
  }

  async acquire({ blocking = true, ttl }: PythonAcquireOptions): Promise<boolean> {
    const body = `value=${this.#uuid}${ttl === null ? '' : `&ttl=${ttl}`}`;
    const expiry = (sentAt: number) => (ttl === null ? undefined : sentAt + ttl * 1000 - CLOCKS);
    if (!(await this.#findLock())) {
      this.#expires ??= expiry(this.#now());
      const { node, sentAt } = await this.#execute('POST', this.#path, body);
      this.#expires = expiry(sentAt);
      this.#setSequence(node.key);
    } else if (ttl) {
      const { sentAt } = await this.#execute('PUT', this.#lockKey, body);
      if (!this.isOverdue) this.#expires = expiry(sentAt);
    }
    return this.#acquired(blocking);
  }

  async release(): Promise<void> {
    if (this.#sequence === undefined) await this.#findLock();
    try {
      await this.#execute('DELETE', this.#lockKey);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    } finally {
      this.#isTaken = false;
    }
  }

  async #acquired(blocking: boolean): Promise<boolean> {
    const nearest = await this.#nearest();
    this.#isTaken = nearest === undefined;
    if (nearest === undefined || !blocking) return this.#isTaken;
    await this.#watch(nearest);
    return this.#acquired(blocking);
  }

  /** Waits for an event of a key. */
  async #watch({ key, modifiedIndex }: V2Node): Promise<void> {
    for (;;) {
      try {
        await this.#execute('GET', `/v2/keys${key}?wait=true&waitIndex=${modifiedIndex + 1}`, undefined, 0);
        return;
      } catch (error) {
        if (!(error instanceof PythonError)) throw error;
        if (isNotFound(error)) return;
        // python-etcd asks for these events again and again, for ever. Whoever runs it must kill it.
        if (error.name === 'EtcdEventIndexCleared') throw error;
      }
      await new Promise((resolve) => void setTimeout(resolve, LOGGING));
    }
  }

  get #lockKey(): string {
    if (this.#sequence === undefined) throw new PythonError('ValueError', 'No sequence present.');
    return `${this.#path}/${this.#sequence}`;
  }

  #setSequence(key: string): void {
    this.#sequence = key.slice(key.lastIndexOf('/') + 1);
  }

  async #findLock(): Promise<boolean> {
    if (this.#sequence !== undefined) return this.#exists(this.#lockKey);
    try {
      const own = (await this.#leaves()).find(({ value }) => value === this.#uuid);
      if (own) this.#setSequence(own.key);
      return own !== undefined;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
  }

  /** Returns the key before the own one; undefined if the own one is the first. @throws {PythonError} `EtcdLockExpired` */
  async #nearest(): Promise<V2Node | undefined> {
    const leaves = await this.#leaves();
    if (this.#sequence === undefined) await this.#findLock();
    const sorted = leaves.toSorted((one, other) => (one.key < other.key ? -1 : 1));
    const own = sorted.findIndex(({ key }) => `/v2/keys${key}` === this.#lockKey);
    if (own < 0) throw new PythonError('EtcdLockExpired', 'Lock not found');
    return sorted[own - 1];
  }

  async #leaves(): Promise<readonly V2Node[]> {
    return leavesOf((await this.#execute('GET', `${this.#path}?recursive=true`)).node);
  }

  async #exists(path: string): Promise<boolean> {
    try {
      await this.#execute('GET', path);
      return true;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return false;
    }
  }
}

/** An empty directory is a leaf to python-etcd. */
const leavesOf = (node: V2Node): readonly V2Node[] => (node.nodes?.length ? node.nodes.flatMap(leavesOf) : [node]);

const isNotFound = (error: unknown): boolean => error instanceof PythonError && error.name === 'EtcdKeyNotFound';
