import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { constants, openSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { CliError, ExitCode, exitCodeOfSignal } from '../exit-codes.ts';
import { waitStatusOf } from './processes/processes.ts';

export interface StartOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether the command gets a session and a process group of its own. */
  readonly detached: boolean;
}

/** Message to the thread: the command to start. */
export interface StartRequest extends StartOptions {
  readonly command: readonly string[];
  /** Working directory of the command; undefined: that of this process. */
  readonly cwd: string | undefined;
  /** Set to 1 when the wait status has been read; the thread waits for that with `Atomics.wait`. */
  readonly ended: Int32Array;
}

/** Message from the thread. */
export type StartReply =
  | { readonly is: 'failed'; readonly message: string; readonly code: string | undefined }
  | { readonly is: 'started'; readonly pid: number }
  | { readonly is: 'ended'; readonly code: number | null; readonly signal: NodeJS.Signals | null };

export interface Started {
  readonly pid: number;
  /** Resolves to the exit code of the command; 128 + n if signal n ended the command. */
  readonly ended: Promise<number>;
}

/**
 * Starts one command and returns its exit code. Node reports exit code 0 for a process that was ended by a signal without a
 * name, such as SIGRTMIN. So a thread starts the command and blocks until the wait status has been read from /proc.
 */
export class Starter {
  readonly #wrapper = dyingWithThisProcess();
  readonly #cwd = leaveDeletedDirectory();
  readonly #thread = new Worker(join(__dirname, 'starter-main.js'));

  constructor() {
    this.#thread.unref(); // the command may never be started
  }

  /** @throws {CliError} if the command cannot be started */
  async start(command: readonly string[], options: StartOptions): Promise<Started> {
    const ended = new Int32Array(new SharedArrayBuffer(4));
    this.#thread.ref();
    const request = { ...options, command: [...this.#wrapper, ...command], cwd: this.#cwd, ended };
    this.#thread.postMessage(request satisfies StartRequest);
    const reply = await this.#next();
    if (reply.is === 'started') return { pid: reply.pid, ended: this.#exitCode(reply.pid, ended) };
    const { message, code } = reply as Extract<StartReply, { is: 'failed' }>;
    const exitCode = code === 'ENOENT' ? ExitCode.notFound : ExitCode.cannotRun;
    throw new CliError(`cannot run ${command[0]}: ${message}`, exitCode);
  }

  async #exitCode(pid: number, ended: Int32Array): Promise<number> {
    const status = await waitStatus(pid);
    const reply = this.#next();
    Atomics.store(ended, 0, 1);
    Atomics.notify(ended, 0);
    const { code, signal } = (await reply) as Extract<StartReply, { is: 'ended' }>;
    if (signal !== null) return exitCodeOfSignal(signal);
    return code || exitCodeOfUnnamedSignal(status);
  }

  async #next(): Promise<StartReply> {
    const [reply] = (await once(this.#thread, 'message')) as [StartReply];
    return reply;
  }
}

/**
 * Leaves the working directory if it has been deleted, because Node starts no thread there. Returns a path of that directory for the
 * command; undefined if nothing was left.
 * @throws {Error} if the directory cannot be opened
 */
function leaveDeletedDirectory(): string | undefined {
  try {
    process.cwd();
    return undefined;
  } catch {
    const directory = openSync('.', constants.O_DIRECTORY);
    process.chdir('/');
    return `/proc/self/fd/${directory}`;
  }
}

/** Returns words to put before a command, so that Linux kills it when this process dies; none without setpriv(1). */
export function dyingWithThisProcess(): readonly string[] {
  const setpriv = ['--pdeathsig', 'KILL'];
  const { status } = spawnSync('setpriv', [...setpriv, 'true'], { stdio: 'ignore' });
  return status === 0 ? ['setpriv', ...setpriv, '--'] : [];
}

/** Mask for the low bits of a wait status: the number of the signal that ended the process, or 0. */
const SIGNAL = 0x7f;

const exitCodeOfUnnamedSignal = (status = 0): number => {
  const signal = status & SIGNAL;
  return signal === 0 ? ExitCode.ok : 128 + signal;
};

/** Waits until a child ends, and resolves to its wait status. Resolves to undefined at once if the status cannot be read. */
function waitStatus(pid: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const check = (): void => {
      const status = waitStatusOf(pid);
      if (status === 'none yet') return;
      process.off('SIGCHLD', check);
      resolve(status);
    };
    process.on('SIGCHLD', check);
    check();
  });
}
