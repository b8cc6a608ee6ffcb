import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { EtcdApi } from '../../src/client.ts';
import { python } from '../support/python.ts';
import type { Event, Stall } from './history.ts';

export type ContenderKind = 'lock' | 'manager' | 'several' | 'candidate' | 'python' | 'etcdctl';

/** Whether it is a process of this package, which must keep every promise. */
export const isOurs = (kind: ContenderKind | undefined): boolean =>
  kind !== undefined && kind !== 'python' && kind !== 'etcdctl';

export interface Orders {
  readonly api: EtcdApi;
  /** Name of the contender, unique in its campaign. */
  readonly who: string;
  /** The name of the lock. */
  readonly lock: string;
  /** Seconds. */
  readonly ttl: number;
  /** In order of preference. */
  readonly endpoints: readonly string[];
  /** URL of the guarded sets. */
  readonly resource: string;
  /** Seconds to wait for the lock; absent: no limit. A foreign contender ignores it. */
  readonly timeout?: number;
  /** Whether it writes without checking that it still holds the lock. */
  readonly trusting?: boolean;
  /** The lock that a contender of kind `several` holds together with the other. */
  readonly also?: string;
  /** How many of the contenders of this package may hold the lock at the same time; absent: one. */
  readonly limit?: number;
  /** Maximum seconds of the occasional long hold; absent: all holds are short. */
  readonly longHold?: number;
}

/** A process that acquires and releases a lock again and again until `quit()` or `kill()`. */
export class Contender {
  readonly kind: ContenderKind;
  readonly orders: Orders;
  /** Resolves once the process has ended and all its events have been read: to a description of its failure, if it failed. */
  readonly ended: Promise<string | undefined>;
  readonly #process: ChildProcess;
  #killed = false;
  #log = '';

  constructor(kind: ContenderKind, orders: Orders, report: (event: Event | Stall) => void) {
    this.kind = kind;
    this.orders = orders;
    const child = spawn(...programs[kind](), {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, NODE_OPTIONS: '', CONTENDER: JSON.stringify(orders) },
    });
    this.#process = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-4000);
    });
    // `quit()` may write to a process that has just ended.
    child.stdin.on('error', () => {});
    createInterface({ input: child.stdout }).on('line', (line) => report(JSON.parse(line) as Event | Stall));
    this.ended = once(child, 'close').then(([code]) => {
      if (this.#killed || (code === 0 && this.#log === '')) return undefined;
      return `${orders.who} exited with code ${code}\n${this.#log}`;
    });
  }

  get who(): string {
    return this.orders.who;
  }

  /** Stops the process with SIGSTOP until `goOn()`. */
  stop(): void {
    this.#process.kill('SIGSTOP');
  }

  goOn(): void {
    this.#process.kill('SIGCONT');
  }

  kill(): void {
    this.#killed = true;
    this.#process.kill('SIGKILL');
  }

  /** Asks the process to finish its turn and exit. */
  quit(): void {
    this.#process.stdin?.write('quit\n');
  }
}

const script = (name: string): string => fileURLToPath(new URL(`contenders/${name}`, import.meta.url));

const programs: Readonly<Record<ContenderKind, () => [string, string[]]>> = {
  lock: () => [process.execPath, [script('lock.mjs')]],
  manager: () => [process.execPath, [script('manager.mjs')]],
  several: () => [process.execPath, [script('several.mjs')]],
  candidate: () => [process.execPath, [script('candidate.mjs')]],
  python: () => [python(), [script('python.py')]],
  etcdctl: () => [process.execPath, [script('etcdctl.mjs')]],
};
