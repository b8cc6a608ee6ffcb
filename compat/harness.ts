import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Options of python's `etcd.Client`, besides host and port. */
export interface ClientOptions {
  readonly lockPrefix?: string;
  /** Seconds. */
  readonly readTimeout?: number;
  readonly versionPrefix?: string;
  /** Fails over to another member when one does not answer. */
  readonly allowReconnect?: boolean;
  readonly username?: string;
  readonly password?: string;
}

/** An exception in Python: `type` is the name of its class. */
export class PythonError extends Error {
  readonly type: string;

  constructor(type: string, message: string) {
    super(`${type}: ${message}`);
    this.name = 'PythonError';
    this.type = type;
  }
}

interface Message {
  readonly id: number;
  readonly event?: string;
  readonly ok?: boolean;
  readonly result?: unknown;
  readonly error?: { readonly type: string; readonly message: string };
}

interface Waiter {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

const script = fileURLToPath(new URL('harness.py', import.meta.url));

/** The TypeScript end of harness.py: numbers the commands and matches the answers. */
export class Harness {
  readonly process: ChildProcess;
  readonly #answers = new Map<number, Waiter>();
  readonly #events = new Map<number, Waiter>();
  #lastId = 0;
  #log = '';
  #ended = false;

  constructor(python: string, etcd: URL, options: ClientOptions) {
    const args = [script, etcd.hostname, etcd.port, JSON.stringify(toPython(options))];
    const child = spawn(python, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.process = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-4_000);
    });
    // A write to a process that has just exited fails; `close` rejects its command.
    child.stdin.on('error', () => {});
    createInterface({ input: child.stdout }).on('line', (line) => this.#receive(JSON.parse(line) as Message));
    child.once('close', () => this.#end());
  }

  call<T>(op: string, command: { readonly args?: object; readonly client?: object; readonly [name: string]: unknown }) {
    return this.#send(op, command).result as Promise<T>;
  }

  /** Sends a command that has an answer and, later, an event. */
  callWithEvent(op: string, command: { readonly args?: object; readonly [name: string]: unknown }) {
    const { id, result } = this.#send(op, command);
    const event = this.#promise(this.#events, id).then(() => {});
    event.catch(() => {});
    return { result, event };
  }

  async stop(): Promise<void> {
    if (this.#ended) return;
    const closed = once(this.process, 'close');
    this.process.stdin?.end();
    const killer = setTimeout(() => this.process.kill('SIGKILL'), 5_000);
    await closed;
    clearTimeout(killer);
  }

  async kill(): Promise<void> {
    if (this.#ended) return;
    const closed = once(this.process, 'close');
    this.process.kill('SIGKILL');
    await closed;
  }

  #send(op: string, command: { readonly args?: object; readonly client?: object }) {
    const id = ++this.#lastId;
    const result = this.#promise(this.#answers, id);
    if (this.#ended) this.#end();
    const { args = {}, client = {} } = command;
    const line = JSON.stringify({ id, op, ...command, args: toPython(args), client: toPython(client) });
    this.process.stdin?.write(`${line}\n`);
    return { id, result };
  }

  #promise(waiters: Map<number, Waiter>, id: number): Promise<unknown> {
    const promise = new Promise((resolve, reject) => waiters.set(id, { resolve, reject }));
    // A test may leave an acquire blocked when it stops the process.
    promise.catch(() => {});
    return promise;
  }

  #receive({ id, event, ok, result, error }: Message): void {
    const waiters = event === undefined ? this.#answers : this.#events;
    const waiter = waiters.get(id);
    waiters.delete(id);
    if (event !== undefined || ok) waiter?.resolve(result);
    else waiter?.reject(new PythonError(error?.type ?? 'unknown', error?.message ?? ''));
  }

  #end(): void {
    this.#ended = true;
    for (const waiters of [this.#answers, this.#events]) {
      for (const { reject } of waiters.values()) reject(new Error(`the Python process has ended\n${this.#log}`));
      waiters.clear();
    }
  }
}

/** Converts `lockTtl` to `lock_ttl`; null stays null, and undefined gets python's default. */
function toPython(options: object): object {
  const named = Object.entries(options).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ]);
  return Object.fromEntries(named);
}
