import { once } from 'node:events';
import { inject, onTestFinished } from 'vitest';
import { runCli, startCli } from '../support/cli.ts';
import type { RunningScript, ScriptResult } from '../support/script.ts';

/** Returns the environment variables for the shared server. */
export const onEtcd = (): Record<string, string> => ({ ETCD_ENDPOINTS: inject('etcd') });

/** Runs `etcd-v2-lock run` without a terminal, and waits for its end. */
export const run = (...args: readonly string[]): Promise<ScriptResult> => runCli(['run', ...args], onEtcd());

/** Starts `etcd-v2-lock run` without a terminal. If it still runs, it is killed after the test. */
export const startRun = (...args: readonly string[]): RunningScript => startRunOn(inject('etcd'), ...args);

/** Like {@link startRun}, on another server. */
export function startRunOn(etcd: string, ...args: readonly string[]): RunningScript {
  const running = startCli(['run', ...args], { ETCD_ENDPOINTS: etcd });
  onTestFinished(async () => {
    // The result is not awaited, because it needs all children to close the shared streams.
    const { process: child } = running;
    if (child.kill('SIGKILL')) await once(child, 'exit');
  });
  return running;
}
