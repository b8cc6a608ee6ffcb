import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { ignore } from '../../base/cancellation.ts';
import type { Report, Task } from './protocol.ts';
import { PYTHON_CONTENDER } from './python.ts';

/** The command that runs a contender of this package. */
export const NODE_CONTENDER: readonly string[] = [process.execPath, join(__dirname, 'contender-main.js')];

/** The command that runs a contender of python-etcd. */
export const pythonContender = (python: string): readonly string[] => [python, '-c', PYTHON_CONTENDER];

/** Characters of stderr that are kept. */
const KEPT = 4000;

/** The process of a contender. It ends when this process ends, because its stdin then ends. */
export class Contender {
  readonly name: string;
  /** Resolves when the process has ended; rejects if it could not be started, or ended by an error. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #stderr = '';
  #isKilled = false;

  /** Starts the process. */
  constructor(name: string, [program = '', ...args]: readonly string[], onReport: (report: Report) => void) {
    this.name = name;
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#child.stdin.on('error', ignore); // it has ended: `ended` says why
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-KEPT);
    });
    createInterface(this.#child.stdout).on('line', (line) => onReport(JSON.parse(line) as Report));
    this.ended = this.#untilEnded();
    this.ended.catch(ignore);
  }

  begin(task: Task): void {
    this.#child.stdin.write(`${JSON.stringify(task)}\n`);
  }

  /** Makes a contender of this package release the lock. */
  release(): void {
    this.#child.stdin.write('\n');
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  kill(): void {
    this.#isKilled = true;
    this.#child.kill('SIGKILL');
  }

  async #untilEnded(): Promise<void> {
    const [code, signal] = (await once(this.#child, 'close')) as [number | null, NodeJS.Signals | null];
    if (code === 0 || this.#isKilled) return;
    const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
    const why = this.#stderr
      .trim()
      .split('\n')
      .at(-1)
      ?.replace(/^etcd-v2-lock: /, '');
    throw new Error(`the process of ${this.name} ended with ${how}${why ? `: ${why}` : ''}`);
  }
}
