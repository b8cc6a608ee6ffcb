import { type RunningScript, type ScriptResult, startNode } from './script.ts';

/** What would tell the commands of another etcd than the test's. */
const NO_ETCD = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => /^ETCD(?:CTL)?_/.test(name))
    .map((name) => [name, '']),
);

/** Starts the built command line as a process of its own, not on a terminal and without stdin. */
export const startCli = (args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningScript =>
  startNode(['dist/cli/main.js', ...args], { ...NO_ETCD, ...env });

export const runCli = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ScriptResult> =>
  startCli(args, env).result;
