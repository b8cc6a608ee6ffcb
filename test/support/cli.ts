import { ignore } from '../../src/base/cancellation.ts';
import { type RunningScript, type ScriptResult, startNode } from './script.ts';

type Environment = Readonly<Record<string, string>>;

/** Empties the variables that would point the CLI at another etcd than the test's. */
const NO_ETCD = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => /^ETCD(?:CTL)?_/.test(name))
    .map((name) => [name, '']),
);

/** Commands that start no process, handle no signal, and end by themselves. */
const IN_PROCESS = ['ls', 'inspect', 'release', 'renew', 'prune', 'doctor', 'completion', 'help'];

/** Variables that the CLI itself reads. Node reads others when it starts. */
const OF_THE_CLI = /^(?:ETCD|COLUMNS$)/;

/** Starts the built CLI in its own process, without a terminal and without stdin. */
export const startCli = (args: readonly string[], env: Environment = {}): RunningScript =>
  startNode(['dist/cli/main.js', ...args], { ...NO_ETCD, ...env });

/** Runs the CLI, without a terminal and without stdin: in this process if that makes no difference. */
export const runCli = (args: readonly string[], env: Environment = {}): Promise<ScriptResult> =>
  IN_PROCESS.includes(args[0] ?? '') && Object.keys(env).every((name) => OF_THE_CLI.test(name))
    ? inTurn(() => runHere(args, env))
    : startCli(args, env).result;

let turn: Promise<unknown> = Promise.resolve();

/** Calls in this process run one after another: they share the arguments, the environment, the streams and the exit code. */
function inTurn<T>(call: () => Promise<T>): Promise<T> {
  const result = turn.then(call);
  turn = result.catch(ignore);
  return result;
}

async function runHere(args: readonly string[], env: Environment): Promise<ScriptResult> {
  const { argv: ownArgv, env: ownEnv, exitCode: ownExitCode } = process;
  const output = { stdout: '', stderr: '' };
  const restore = (['stdout', 'stderr'] as const).map((name) => {
    const stream = process[name];
    const write = stream.write;
    stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
      output[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
      const written = rest.at(-1);
      if (typeof written === 'function') setImmediate(() => written());
      return true;
    };
    return () => {
      stream.write = write;
    };
  });
  process.argv = [process.execPath, 'etcd-v2-lock', ...args];
  process.env = { ...ownEnv, ...NO_ETCD, ...env };
  process.exitCode = undefined;
  try {
    const { main } = await import('../../src/cli/program.ts');
    await main(process.argv);
    // What the command left to print or to set right after its end.
    await new Promise(setImmediate);
    return { code: Number(process.exitCode ?? 0), signal: null, ...output };
  } finally {
    process.argv = ownArgv;
    process.env = ownEnv;
    process.exitCode = ownExitCode;
    for (const end of restore) end();
  }
}
