import { randomUUID } from 'node:crypto';
import { inject, onTestFinished } from 'vitest';
import { runCli, startCli } from './cli.ts';
import { freshName, raw } from './locks.ts';
import type { ScriptResult } from './script.ts';
import { type UntilOptions, until } from './until.ts';

/** Returns a unique lock name; the end of the test removes its directory. */
export function useLockName(etcd = inject('etcd')): string {
  const name = freshName();
  onTestFinished(async () => {
    await raw('DELETE', `/_locks/${name}?recursive=true`, undefined, etcd);
  });
  return name;
}

/** Appends an entry to the queue of a lock with a plain request; resolves to its key. */
export async function enqueue(
  name: string,
  value: string = randomUUID(),
  { ttl = '600', etcd = inject('etcd') } = {},
): Promise<string> {
  const { body } = await raw('POST', `/_locks/${name}`, { value, ttl }, etcd);
  return body.node.key;
}

/** Runs the CLI on this etcd. */
export const ask = (args: readonly string[], etcd = inject('etcd')): Promise<ScriptResult> =>
  runCli(args, { ETCD_ENDPOINTS: etcd });

/** Runs the CLI with `--json`; throws unless it exits with 0 and prints nothing on stderr. */
export async function askJson<T>(args: readonly string[], etcd = inject('etcd')): Promise<T> {
  const { code, stdout, stderr } = await ask([...args, '--json'], etcd);
  if (code !== 0 || stderr !== '') throw new Error(`${args.join(' ')} exited with ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
}

export interface Watch {
  readonly process: ReturnType<typeof startCli>['process'];
  /** Waits until stdout has `count` lines, and returns all lines. */
  lines(count: number, options?: UntilOptions): Promise<string[]>;
  /** Waits until stderr contains the words. */
  complains(words: string): Promise<unknown>;
  /** Sends the signal and waits for the exit. */
  end(signal: NodeJS.Signals): Promise<ScriptResult>;
}

/** Starts `etcd-v2-lock watch`; the end of the test kills it. */
export function startWatch(args: readonly string[], etcd = inject('etcd')): Watch {
  const { process, result } = startCli(['watch', ...args], { ETCD_ENDPOINTS: etcd });
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const)
    process[stream].on('data', (chunk) => {
      said[stream] += chunk;
    });
  const end = (signal: NodeJS.Signals): Promise<ScriptResult> => {
    process.kill(signal);
    return result;
  };
  onTestFinished(async () => {
    await end('SIGKILL');
  });
  const lines = async (count: number, options?: UntilOptions): Promise<string[]> => {
    const whole = () => said.stdout.split('\n').slice(0, -1);
    return until(whole, ({ length }) => length >= count, options).catch((error: unknown) => {
      throw new Error(`${said.stdout}${said.stderr}`, { cause: error });
    });
  };
  const complains = (words: string) =>
    until(
      () => said.stderr,
      (text) => text.includes(words),
    );
  return { process, lines, complains, end };
}
