import { randomUUID } from 'node:crypto';
import { inject, onTestFinished } from 'vitest';
import { runCli, startCli } from './cli.ts';
import { freshName, raw } from './locks.ts';
import type { ScriptResult } from './script.ts';
import { type UntilOptions, until } from './until.ts';

/** A lock name of this test's own; its directory goes when the test is over. */
export function useLockName(etcd = inject('etcd')): string {
  const name = freshName();
  onTestFinished(async () => {
    await raw('DELETE', `/_locks/${name}?recursive=true`, undefined, etcd);
  });
  return name;
}

/** Puts an entry into the queue of a lock, as anyone could; resolves to its key. */
export async function enqueue(
  name: string,
  value: string = randomUUID(),
  { ttl = '600', etcd = inject('etcd') } = {},
): Promise<string> {
  const { body } = await raw('POST', `/_locks/${name}`, { value, ttl }, etcd);
  return body.node.key;
}

/** Runs the command line on this etcd. */
export const ask = (args: readonly string[], etcd = inject('etcd')): Promise<ScriptResult> =>
  runCli(args, { ETCD_ENDPOINTS: etcd });

/** Runs it with `--json`, which must go well without a word. */
export async function askJson<T>(args: readonly string[], etcd = inject('etcd')): Promise<T> {
  const { code, stdout, stderr } = await ask([...args, '--json'], etcd);
  if (code !== 0 || stderr !== '') throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout) as T;
}

export interface Watch {
  readonly process: ReturnType<typeof startCli>['process'];
  /** Waits until so many lines have come, and returns all there are. */
  lines(count: number, options?: UntilOptions): Promise<string[]>;
  /** Waits until stderr says it. */
  complains(words: string): Promise<unknown>;
  /** Ends it by this signal. */
  end(signal: NodeJS.Signals): Promise<ScriptResult>;
}

/** `etcd-v2-lock watch`, ended with the test at the latest. */
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
