import { once } from 'node:events';
import { inject, onTestFinished } from 'vitest';
import { runCli, startCli } from '../support/cli.ts';
import type { RunningScript, ScriptResult } from '../support/script.ts';

/** Environment variables for the shared server. */
export const onEtcd = (): Record<string, string> => ({ ETCD_ENDPOINTS: inject('etcd') });

/** Runs `etcd-v2-lock run` without a terminal and waits for its end. */
export const run = (...args: readonly string[]): Promise<ScriptResult> => runCli(['run', ...args], onEtcd());

/** Starts `etcd-v2-lock run` without a terminal. Kills it after the test. */
export const startRun = (...args: readonly string[]): RunningScript => startRunOn(inject('etcd'), ...args);

/** Starts `etcd-v2-lock run` on another server. */
export function startRunOn(etcd: string, ...args: readonly string[]): RunningScript {
  const running = startCli(['run', ...args], { ETCD_ENDPOINTS: etcd });
  onTestFinished(async () => {
    // Not `result`: it waits until all children have closed stdout and stderr.
    const { process: child } = running;
    if (child.kill('SIGKILL')) await once(child, 'exit');
  });
  return running;
}
