import { type RunningScript, type ScriptResult, startNode } from './script.ts';

/** Empties the variables that would point the CLI at another etcd than the test's. */
const NO_ETCD = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => /^ETCD(?:CTL)?_/.test(name))
    .map((name) => [name, '']),
);

/** Starts the built CLI in its own process, without a terminal and without stdin. */
export const startCli = (args: readonly string[], env: Readonly<Record<string, string>> = {}): RunningScript =>
  startNode(['dist/cli/main.js', ...args], { ...NO_ETCD, ...env });

export const runCli = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<ScriptResult> =>
  startCli(args, env).result;
