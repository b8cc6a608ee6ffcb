import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { inject, onTestFinished } from 'vitest';
import { until } from './until.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface OnTerminal {
  /** Everything the terminal has shown so far. */
  readonly shown: () => string;
  type(text: string): void;
  /** Waits until everything shown so far matches. */
  shows(text: RegExp): Promise<string>;
  /** Closes the terminal. */
  hangUp(): void;
  /** Exit code of the command; 128 + n if signal n ended it. */
  readonly ended: Promise<number>;
}

/** Runs a command as the leader of a session on a new terminal, in the root of the package. */
export function startOnTerminal(command: readonly string[], env: Readonly<Record<string, string>> = {}): OnTerminal {
  const program = fileURLToPath(new URL('terminal.py', import.meta.url));
  const child = spawn(inject('python') ?? 'python3', [program, ...command], {
    cwd: ROOT,
    env: { ...process.env, NODE_OPTIONS: '', TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  child.stdin.on('error', () => {}); // the command has ended
  const ended = once(child, 'exit').then(([code]) => code as number);
  onTestFinished(async () => {
    // This also closes the terminal. Tests that start processes which ignore SIGHUP kill them.
    child.kill('SIGKILL');
    await ended;
  });
  return {
    shown: () => shown,
    type: (text) => void child.stdin.write(text),
    shows: (text) =>
      until(
        () => shown,
        (all) => text.test(all),
      ),
    hangUp: () => void child.stdin.end(),
    ended,
  };
}
