import { once } from 'node:events';
import { inject, onTestFinished } from 'vitest';
import { runCli, startCli } from '../support/cli.ts';
import type { RunningScript, ScriptResult } from '../support/script.ts';

/** The shared server, as the environment tells of it. */
export const onEtcd = (): Record<string, string> => ({ ETCD_ENDPOINTS: inject('etcd') });

/** `etcd-v2-lock run` without a terminal, to its end. */
export const run = (...args: readonly string[]): Promise<ScriptResult> => runCli(['run', ...args], onEtcd());

/** Starts `etcd-v2-lock run` without a terminal; killed, if it is still there, when the test is over. */
export const startRun = (...args: readonly string[]): RunningScript => startRunOn(inject('etcd'), ...args);

/** The same on another server. */
export function startRunOn(etcd: string, ...args: readonly string[]): RunningScript {
  const running = startCli(['run', ...args], { ETCD_ENDPOINTS: etcd });
  onTestFinished(async () => {
    // Not for its result: that waits until all children have closed what it shares with them.
    const { process: child } = running;
    if (child.kill('SIGKILL')) await once(child, 'exit');
  });
  return running;
}
