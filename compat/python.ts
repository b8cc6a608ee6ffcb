import type { ChildProcess } from 'node:child_process';
import { python } from '../test/support/python.ts';
import { type ClientOptions, Harness } from './harness.ts';

export type { ClientOptions } from './harness.ts';
export { PythonError } from './harness.ts';

/** python-etcd's arguments; omitted ones get python-etcd's defaults. */
export interface PythonAcquire {
  readonly blocking?: boolean;
  /** Seconds; null for a lock that never expires. */
  readonly lockTtl?: number | null;
  readonly timeout?: number;
}

export interface PythonHold extends Omit<PythonAcquire, 'blocking'> {
  /** Seconds until the release; by default the hold lasts until `release()`. */
  readonly seconds?: number;
}

export interface PythonCycle extends Omit<PythonAcquire, 'blocking'> {
  readonly times: number;
  /** The etcd key of an integer that only the lock guards. */
  readonly counter: string;
  /** Seconds between reading and writing the counter. */
  readonly pause?: number;
  /** The etcd key that exists while a holder uses the counter; a holder that finds the key fails. */
  readonly inside?: string;
  /** Port of another etcd that has the counter and `inside`. */
  readonly counterPort?: number;
}

export interface PythonLockOptions {
  /** Set without a check that the queue has it, unlike `setUuid`. */
  readonly uuid?: string;
  readonly client?: ClientOptions;
}

export interface PythonState {
  readonly uuid: string;
  readonly isTaken: boolean;
  readonly lockKey: string | null;
}

export interface Contender {
  readonly key: string;
  readonly value: string;
}

/** A python-etcd Lock. Its calls run one after the other, except `state` and `contenders`, which never wait. */
export interface PythonLock {
  acquire(options?: PythonAcquire): Promise<boolean>;
  release(): Promise<void>;
  isAcquired(): Promise<boolean>;
  state(): Promise<PythonState>;
  setUuid(uuid: string): Promise<void>;
  contenders(): Promise<Contender[]>;
  /** Resolves when the lock is held; `released` resolves when the lock has been released. */
  hold(options?: PythonHold): Promise<{ released: Promise<void> }>;
  /** Acquires, counts and releases, repeatedly. Resolves to the keys that were held, in order. */
  cycle(options: PythonCycle): Promise<string[]>;
}

export interface Python {
  readonly process: ChildProcess;
  /** A new Lock on a new Client. */
  lock(name: string, options?: PythonLockOptions): Promise<PythonLock>;
  /** Closes the process's stdin and waits for its exit; the keys of its locks stay in etcd. */
  stop(): Promise<void>;
  /** Ends the process as a crash would. */
  kill(): Promise<void>;
}

/** Returns the port in a URL. */
export const portOf = (url: string): number => Number(new URL(url).port);

/** Starts a Python process for any number of python-etcd locks. The read timeout defaults to 1 h: python's watch spins on it. */
export async function startPython(etcdUrl: string, options: ClientOptions = {}): Promise<Python> {
  const harness = new Harness(python(), new URL(etcdUrl), { readTimeout: 3600, ...options });
  let locks = 0;
  return {
    process: harness.process,
    async lock(name, { uuid, client } = {}) {
      const lock = `lock${++locks}`;
      await harness.call('lock', { lock, name, uuid: uuid ?? null, client: client ?? {} });
      return lockOf(harness, lock);
    },
    stop: () => harness.stop(),
    kill: () => harness.kill(),
  };
}

function lockOf(harness: Harness, lock: string): PythonLock {
  const call = <T>(op: string, args: object = {}) => harness.call<T>(op, { lock, args });
  return {
    acquire: (options = {}) => call('acquire', options),
    release: () => call('release'),
    isAcquired: () => call('isAcquired'),
    state: () => call('state'),
    setUuid: (uuid) => call('setUuid', { uuid }),
    contenders: () => call('contenders'),
    async hold({ seconds, ...acquire } = {}) {
      const { result, event } = harness.callWithEvent('hold', { lock, args: { seconds: seconds ?? null, ...acquire } });
      await result;
      return { released: event };
    },
    cycle: (options) => call('cycle', options),
  };
}
