import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { python } from '../support/python.ts';
import type { Event } from './history.ts';

export type ContenderKind = 'lock' | 'manager' | 'python';

export interface Orders {
  /** Unique among all contenders there ever were. */
  readonly who: string;
  /** The name of the lock. */
  readonly lock: string;
  /** Seconds. */
  readonly ttl: number;
  /** In the order of preference. */
  readonly endpoints: readonly string[];
  /** Where the guarded sets are. */
  readonly resource: string;
  /** Seconds to wait for the lock; absent: no limit. python-etcd has no such thing. */
  readonly timeout?: number;
  /** Whether it writes without looking whether it still holds the lock. */
  readonly trusting?: boolean;
  /** Seconds that some holds last, at most; absent: all are short. */
  readonly longHold?: number;
}

/** A process that takes turns until told to quit, or killed. */
export class Contender {
  readonly kind: ContenderKind;
  readonly orders: Orders;
  /** Resolves once it has ended and all it told is known: to why it should not have, if so. */
  readonly ended: Promise<string | undefined>;
  readonly #process: ChildProcess;
  #killed = false;
  #log = '';

  constructor(kind: ContenderKind, orders: Orders, tell: (event: Event) => void) {
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
    // Told to quit when it has just ended.
    child.stdin.on('error', () => {});
    createInterface({ input: child.stdout }).on('line', (line) => tell(JSON.parse(line) as Event));
    this.ended = once(child, 'close').then(([code]) => {
      if (this.#killed || (code === 0 && this.#log === '')) return undefined;
      return `${orders.who} ended with ${code}\n${this.#log}`;
    });
  }

  get who(): string {
    return this.orders.who;
  }

  /** Stops it in the middle of whatever it does. */
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

  /** Lets it finish its turn. */
  quit(): void {
    this.#process.stdin?.write('quit\n');
  }
}

const script = (name: string): string => fileURLToPath(new URL(`contenders/${name}`, import.meta.url));

const programs: Readonly<Record<ContenderKind, () => [string, string[]]>> = {
  lock: () => [process.execPath, [script('lock.mjs')]],
  manager: () => [process.execPath, [script('manager.mjs')]],
  python: () => [python(), [script('python.py')]],
};
