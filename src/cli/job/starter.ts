import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { CliError, ExitCode, exitCodeOfSignal } from '../exit-codes.ts';
import { waitStatusOf } from './processes.ts';

/** What is to be started, and where to note that it has ended. */
export interface StartRequest {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether it gets a session and a process group of its own. */
  readonly detached: boolean;
  readonly ended: Int32Array;
}

export type StartReply =
  | { readonly is: 'failed'; readonly message: string; readonly code: string | undefined }
  | { readonly is: 'started'; readonly pid: number }
  | { readonly is: 'ended'; readonly code: number | null; readonly signal: NodeJS.Signals | null };

export interface Started {
  readonly pid: number;
  /** Its exit code; 128 + n when signal n ended it. */
  readonly ended: Promise<number>;
}

/**
 * Starts one command and finds out how it ended. Node reports exit code 0 for a process that was ended by a signal without a
 * name, such as SIGRTMIN. So a thread starts the command and does not collect its status until that has been read from /proc.
 */
export class Starter {
  readonly #thread = new Worker(new URL('starter-main.js', import.meta.url));

  constructor() {
    this.#thread.unref(); // it may never be needed
  }

  /**
   * @param name of the command, for the error
   * @throws {CliError} when it cannot be started
   */
  async start(name: string, request: Omit<StartRequest, 'ended'>): Promise<Started> {
    const ended = new Int32Array(new SharedArrayBuffer(4));
    this.#thread.ref();
    this.#thread.postMessage({ ...request, ended } satisfies StartRequest);
    const reply = await this.#next();
    if (reply.is === 'started') return { pid: reply.pid, ended: this.#ended(reply.pid, ended) };
    const { message, code } = reply as Extract<StartReply, { is: 'failed' }>;
    const exitCode = code === 'ENOENT' ? ExitCode.notFound : ExitCode.cannotRun;
    throw new CliError(`${name} cannot be run: ${message}`, exitCode);
  }

  async #ended(pid: number, ended: Int32Array): Promise<number> {
    const status = await untilOver(pid);
    const reply = this.#next();
    Atomics.store(ended, 0, 1);
    Atomics.notify(ended, 0);
    const { code, signal } = (await reply) as Extract<StartReply, { is: 'ended' }>;
    if (signal !== null) return exitCodeOfSignal(signal);
    return code || codeOfUnnamed(status);
  }

  async #next(): Promise<StartReply> {
    const [reply] = (await once(this.#thread, 'message')) as [StartReply];
    return reply;
  }
}

/** What the low bits of a wait status say: the number of the signal that ended the process, if one did. */
const SIGNAL = 0x7f;

const codeOfUnnamed = (status: number | undefined): number => {
  const signal = (status ?? 0) & SIGNAL;
  return signal === 0 ? ExitCode.ok : 128 + signal;
};

/** Resolves to the wait status of a child once it has ended; to undefined at once where that cannot be seen. */
function untilOver(pid: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const look = (): void => {
      const status = waitStatusOf(pid);
      if (status === 'none yet') return;
      process.off('SIGCHLD', look);
      resolve(status);
    };
    process.on('SIGCHLD', look);
    look();
  });
}
