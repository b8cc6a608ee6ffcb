import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { cache } from '../../scripts/peers/cache.mjs';
import { untilGone } from '../../test/support/processes.ts';
import { tied } from '../../test/support/tied.ts';

const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

/** The command line of each program that reads the commands in README.md. */
const COMMANDS = {
  Node: [process.execPath, here('contender.mjs')],
  etcdctl: ['bash', here('etcdctl.sh')],
  'Go 3.5': [join(cache, 'etcd-3.5/mutex')],
  'Go 3.6': [join(cache, 'etcd-3.6/mutex')],
  jetcd: ['java', '-cp', `${join(cache, 'jetcd')}/contender.jar:${join(cache, 'jetcd/lib')}/*`, 'Contender'],
  aetcd: [join(cache, 'aetcd/bin/python'), here('aetcd/contender.py')],
} as const;

export type Kind = keyof typeof COMMANDS;

/** The clients that wait in the queue of this package's locks. */
export const IN_THE_QUEUE = ['etcdctl', 'Go 3.5', 'Go 3.6', 'jetcd'] as const;

export interface Setting {
  /** The URL of the server. */
  readonly etcd: string;
  /** The key of the lock, such as `/_locks/file1`. */
  readonly lock: string;
  /** Seconds. */
  readonly ttl: number;
}

/** A process with one lock; the end of the test kills it. */
export class Contender {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #waiting: { wanted: RegExp; resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  readonly #kind: Kind;
  #log = '';
  #ended: Error | undefined;

  constructor(kind: Kind, { etcd, lock, ttl }: Setting) {
    this.#kind = kind;
    const [program, ...args] = tied([...COMMANDS[kind], etcd, lock, String(ttl)]);
    // A group of its own: `etcdctl lock` and its command must end with the script that starts them.
    this.#process = spawn(program, args, { stdio: 'pipe', detached: true });
    onTestFinished(() => this.kill());
    this.#process.stdin.on('error', () => {});
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-4_000);
    });
    createInterface({ input: this.#process.stdout }).on('line', (line) => this.#receive(line));
    this.#process.once('close', (code, signal) => this.#end(`ended (${signal ?? code})`));
    this.#process.once('error', ({ message }) => this.#end(message));
  }

  /** Resolves to the token, once it holds the lock. */
  async hold(): Promise<bigint> {
    return BigInt((await this.#send('hold', /^held \d+$/)).slice('held '.length));
  }

  async release(): Promise<void> {
    await this.#send('release', /^released$/);
  }

  /** Acquires, counts in that directory and releases, repeatedly. */
  async cycle(times: number, directory: string): Promise<void> {
    await this.#send(`cycle ${times} ${directory}`, /^cycled$/);
  }

  /** Kills the process and those it has started, as a crash would. */
  async kill(): Promise<void> {
    const { pid } = this.#process;
    if (pid === undefined || this.#ended) return;
    const closed = once(this.#process, 'close');
    process.kill(-pid, 'SIGKILL');
    await closed;
    await untilGone(pid);
  }

  #send(command: string, wanted: RegExp): Promise<string> {
    const answer = new Promise<string>((resolve, reject) => {
      if (this.#ended) reject(this.#ended);
      else this.#waiting.push({ wanted, resolve, reject });
    });
    // A test may leave a hold waiting.
    answer.catch(() => {});
    this.#process.stdin.write(`${command}\n`);
    return answer;
  }

  #receive(line: string): void {
    const index = this.#waiting.findIndex(({ wanted }) => wanted.test(line));
    const [waiting] = index < 0 ? [] : this.#waiting.splice(index, 1);
    waiting?.resolve(line);
  }

  #end(how: string): void {
    this.#ended = new Error(`${this.#kind} ${how}\n${this.#log}`);
    for (const { reject } of this.#waiting.splice(0)) reject(this.#ended);
  }
}
