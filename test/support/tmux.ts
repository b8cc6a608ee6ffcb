import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { until } from './until.ts';

const execute = promisify(execFile);
let count = 0;

export interface Tmux {
  /** The text on the screen, without spaces at the ends of lines. */
  screen(): Promise<string>;
  /** Waits until the screen matches, and returns it. */
  shows(text: RegExp): Promise<string>;
  /** Presses keys, by tmux's names. */
  press(...keys: readonly string[]): Promise<void>;
  resize(columns: number, rows: number): Promise<void>;
}

/** Runs a shell command in a terminal of its own. The end of the test closes it. */
export async function startInTmux(command: string, columns: number, rows: number): Promise<Tmux> {
  count += 1;
  const server = `etcd-lock-${process.pid}-${count}`;
  const tmux = async (...args: readonly string[]): Promise<string> =>
    (await execute('tmux', ['-L', server, '-f', '/dev/null', ...args])).stdout;
  onTestFinished(() => tmux('kill-server').then(() => {}));
  const size = ['-x', String(columns), '-y', String(rows)];
  await tmux('new-session', '-d', ...size, command);
  const screen = async (): Promise<string> => (await tmux('capture-pane', '-p')).replace(/ +$/gm, '');
  return {
    screen,
    shows: (text) => until(screen, (shown) => text.test(shown)),
    press: (...keys) => tmux('send-keys', ...keys).then(() => {}),
    resize: (x, y) => tmux('resize-window', '-x', String(x), '-y', String(y)).then(() => {}),
  };
}
