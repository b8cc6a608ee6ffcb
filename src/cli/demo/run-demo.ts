import { randomUUID } from 'node:crypto';
import { errorText } from '../../base/error-text.ts';
import { EtcdClient, type EtcdClientOptions } from '../../client.ts';
import { originsOf } from '../../http/checks/endpoints.ts';
import { EmbeddedEtcd } from '../../server/embedded.ts';
import { ExitCode } from '../exit-codes.ts';
import { dyingWithThisProcess } from '../job/starter.ts';
import { complain, type OutputLine, print, styled } from '../streams.ts';
import { NODE_CONTENDER, pythonContender } from './contender.ts';
import { Contenders } from './contenders.ts';
import { ABOUT_CRASH, showCrash } from './crash.ts';
import { findPython, suitsPython } from './python.ts';
import { Screen } from './screen.ts';
import { ABOUT_TURNS, showTurns } from './turns.ts';

export interface DemoOptions {
  /** Whether a holder is killed, and another one stopped. */
  readonly crash: boolean;
  /** Ends the demo. */
  readonly signal: AbortSignal;
}

/**
 * Shows the demo on the etcd that the options name, or else on an embedded server. Returns the exit code.
 * @throws {EtcdConnectionFailed} if that etcd cannot be reached
 */
export async function runDemo(options: EtcdClientOptions, how: DemoOptions): Promise<number> {
  if (options.srvDomain !== undefined) return runOn(options, `the etcd of ${options.srvDomain}`, how);
  if (options.endpoints !== undefined) {
    const endpoints = originsOf(options);
    return runOn({ ...options, endpoints }, endpoints.join(', '), how);
  }
  const etcd = await EmbeddedEtcd.start();
  try {
    return await runOn(embeddedOptions(options, etcd.url), `in memory, ${etcd.url}`, how);
  } finally {
    await etcd.stop();
  }
}

/** Leaves out the options about a certain server, such as its users. */
const embeddedOptions = ({ api = 'v2', lockPrefix }: EtcdClientOptions, url: string): EtcdClientOptions => ({
  endpoints: [url],
  api,
  ...(lockPrefix === undefined ? {} : { lockPrefix }),
});

async function runOn(clientOptions: EtcdClientOptions, server: string, how: DemoOptions): Promise<number> {
  const client = new EtcdClient(clientOptions);
  const name = `demo-${randomUUID().slice(0, 8)}`;
  try {
    await client.surveyor.lock(name, { signal: how.signal }); // fails if this etcd cannot be used
    try {
      return await runContenders(client, { clientOptions, name, server, ...how });
    } finally {
      await removeQueue(client, name);
    }
  } catch (error) {
    if (!how.signal.aborted) throw error;
    return ExitCode.ok;
  } finally {
    await client.close();
  }
}

interface RunOptions extends DemoOptions {
  readonly clientOptions: EtcdClientOptions;
  /** Name of the lock. */
  readonly name: string;
  /** Which etcd it is, for people. */
  readonly server: string;
}

async function runContenders(client: EtcdClient, options: RunOptions): Promise<number> {
  const { clientOptions, name, server, crash, signal } = options;
  const { api = 'v2' } = clientOptions;
  const commands = commandsOf(options);
  print([styled('bold', `One lock, ${commands.size} processes`), `: ${crash ? ABOUT_CRASH : ABOUT_TURNS}.`]);
  print(`Lock: ${name}. etcd: ${server}, API ${api}.`);
  if (!crash && api === 'v2' && !commands.has(PYTHON))
    print([styled('dim', '(all are Node.js programs: python-etcd was not found, or does not support this etcd)')]);
  print('');
  const screen = new Screen();
  const contenders = new Contenders({ commands, client, clientOptions, name, screen, signal });
  try {
    const { isGood, text } = await (crash ? showCrash : showTurns)(contenders);
    screen.finish();
    print('');
    print([styled(isGood ? 'green' : 'red', `${isGood ? '✔' : '✗'} ${text}`)]);
    for (const line of crash ? AFTER_CRASH : AFTER_TURNS) print(line);
    return isGood ? ExitCode.ok : ExitCode.no;
  } finally {
    screen.stop();
    await contenders[Symbol.asyncDispose]();
  }
}

const PYTHON = 'python-etcd';

/** Returns the names of the contenders, each with its command. */
function commandsOf({ clientOptions, crash }: RunOptions): Map<string, readonly string[]> {
  // A contender that is stopped cannot notice that this process has been killed.
  const wrapper = dyingWithThisProcess();
  const node = (count: number) =>
    Array.from({ length: count }, (_, at) => [`node-${at + 1}`, [...wrapper, ...NODE_CONTENDER]] as const);
  if (crash) return new Map(node(3));
  const python = suitsPython(clientOptions) ? findPython() : undefined;
  return new Map(python === undefined ? node(4) : [...node(3), [PYTHON, [...wrapper, ...pythonContender(python)]]]);
}

const AFTER_TURNS: readonly OutputLine[] = [['Next: ', styled('bold', 'npx etcd-v2-lock demo --crash')]];
const AFTER_CRASH: readonly OutputLine[] = [
  ['Next: ', styled('bold', 'npx etcd-v2-lock serve')],
  ['      ', styled('bold', 'npx etcd-v2-lock run my-lock -- sleep 5'), '   (in another terminal)'],
];

/** Removes what the contenders have left in etcd: the entries of those that were killed, and on v2 the directory of the lock. */
async function removeQueue({ surveyor }: EtcdClient, name: string): Promise<void> {
  try {
    const { queue } = await surveyor.lock(name, { ttls: false });
    for (const entry of queue.entries) await surveyor.remove(entry);
    for await (const _ of surveyor.prune(name, { dryRun: false }));
  } catch (error) {
    complain(`cannot remove lock ${name}: ${errorText(error)}`);
  }
}
