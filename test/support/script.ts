import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface ScriptResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningScript {
  readonly process: ChildProcessByStdio<null, Readable, Readable>;
  readonly result: Promise<ScriptResult>;
}

/** Starts the source of a module in a plain Node process, which can import the package by its name. */
export const startScript = (source: string, env?: Record<string, string>): RunningScript =>
  startNode(['--input-type=module', '--eval', source], env);

export const runScript = (source: string, env?: Record<string, string>): Promise<ScriptResult> =>
  startScript(source, env).result;

/** Runs Node in the root of the package. */
export function startNode(args: readonly string[], env: Record<string, string> = {}): RunningScript {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, NODE_OPTIONS: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const result = Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]).then(
    ([[code, signal], stdout, stderr]) => ({ code, signal, stdout, stderr }),
  );
  return { process: child, result };
}
