import { Command } from 'commander';
import { ignore } from '../../../base/cancellation.ts';
import { show } from '../../../base/checks.ts';
import { EtcdClient } from '../../../client.ts';
import { TlsFiles } from '../../../http/tls/files.ts';
import { isInterval, type Schedule } from '../../../manager/once/schedule.ts';
import { checkListening } from '../../../server/listening.ts';
import { clientOptions, connectionOf, type StoreOptions } from '../../connection.ts';
import { accessBy } from '../../doctor/access.ts';
import { checked, ExitCode, UsageError } from '../../exit-codes.ts';
import { readFirstLine } from '../../files.ts';
import { ASKING, explain } from '../../help.ts';
import { keepLive } from '../../live/feed.ts';
import { LiveModel } from '../../live/model.ts';
import { scheduleFor } from '../../queues/ticks.ts';
import { outcome } from '../../session.ts';
import { aborted, untilSignalled } from '../../signals.ts';
import { complain, print, printJson, remark } from '../../streams.ts';
import { checkToken, isLoopback } from '../../ui/access.ts';
import { type JobStore, Jobs } from '../../ui/jobs.ts';
import { readPage } from '../../ui/page-files.ts';
import { Releases } from '../../ui/release/releases.ts';
import { checksReport, moveReport, type Report, type Reports } from '../../ui/reports.ts';
import { type UiData, type UiOptions, UiServer } from '../../ui/server.ts';
import { Viewers } from '../../ui/viewers.ts';
import { addressOf, addTlsFlags, type TlsFlags, tlsOf } from './listening.ts';

interface Flags extends TlsFlags {
  readonly listen: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly allowRelease?: true;
  readonly once?: readonly string[];
  readonly timeZone?: string;
  readonly json?: boolean;
}

const ABOUT = `
The page changes nothing in etcd, unless --allow-release is given. It shows all locks, the most urgent first, and the queue of one lock
with what has happened to it since ui started. It also shows elections with their values, and the jobs that run once per tick: on etcd v3
all, on v2 those of --once. With --api both, it shows the locks of v2 and of v3.

Without a prefix, the page has on demand the findings of "doctor", and with --api both those of "doctor --moving". Each of the two is made
at most once per minute. No test keys are created: so on etcd v2, the order of key names is not checked.

ui lists all queues once, and follows them with one watch; a viewer costs etcd nothing. After an outage it lists them again. At most 10,000
locks are shown, to at most 100 viewers. /api/locks and others have the same as JSON and as server-sent events: see docs/ui.md.

Without --token or --listen-ca, --listen must be an address that only this machine can reach. A browser must use the address or the name
in --listen, localhost, or an IP address: requests for other host names, and those of other sites, get status 403. With --allow-release,
whoever can open the page can release each lock that it shows.`;

/** `etcd-v2-lock ui`: serves a page with all locks until a signal ends it. */
export function uiCommand(): Command {
  const command = new Command('ui')
    .description('Serve a web page with all locks and their queues, live, on this machine. Prints its URL.')
    .argument('[prefix]', 'only locks whose name begins with this prefix')
    .option('--listen <address:port>', 'where to listen; port 0 for any free port', '127.0.0.1:4080')
    .option('--token <text>', 'text that viewers need; visible to other users of this machine, so prefer --token-file')
    .option('--token-file <file>', 'file with that text in its first line: 16 characters or more');
  addTlsFlags(command, 'page')
    .option('--allow-release', 'viewers may remove entries from queues, as the command "release" does')
    .option(
      '--once <name=schedule>',
      'schedule of a job, as "run --once" has it, to count its missed ticks; can be repeated',
      (job: string, others: readonly string[] = []) => [...others, job],
    )
    .option('--time-zone <zone>', 'time zone of the cron expressions of --once, such as Europe/Berlin (default: UTC)')
    .option('--json', 'print JSON: one line with the URL and the process ID')
    .addHelpText('after', ABOUT)
    .action(async (prefix: string | undefined, flags: Flags, self: Command) => {
      process.exitCode = await outcome(() => ui(prefix ?? '', flags, self));
    });
  return explain(command, {
    exitReasons: [...ASKING, 'signalled'],
    examples: [
      ['etcd-v2-lock ui', 'show all locks on http://127.0.0.1:4080'],
      [
        'etcd-v2-lock ui --listen 0.0.0.0:4080 --token-file token',
        'for all hosts: open http://HOST:4080/?token=TOKEN once',
      ],
    ],
  });
}

/** @throws {UsageError} for an invalid option */
function listeningOf({ listen, token: given, tokenFile, ...flags }: Flags): UiOptions {
  const address = addressOf(listen);
  if (!address) throw new UsageError(`--listen must be an address and a port, got "${listen}"`);
  const { host, port } = checked(() => checkListening(address));
  if (given !== undefined && tokenFile !== undefined)
    throw new UsageError('--token and --token-file cannot be used together');
  const token = tokenFile === undefined ? given : readFirstLine(tokenFile, '--token-file', 'token');
  if (token !== undefined) checked(() => checkToken(token));
  if (!isLoopback(host) && token === undefined && flags.listenCa === undefined)
    throw new UsageError(
      `with --listen ${listen}, other machines can open the page: use --token-file, or --listen-ca for client certificates`,
    );
  const tls = tlsOf(flags);
  return { host, port, token, tls: tls && checked(() => new TlsFiles(tls)) };
}

/**
 * Returns the schedules of the jobs, by name.
 * @throws {UsageError} for an invalid schedule, name or time zone
 */
function schedulesOf({ once = [], timeZone }: Flags, prefix: string): ReadonlyMap<string, Schedule> {
  const schedules = new Map<string, Schedule>();
  const everies = once.map((job) => job.slice(job.lastIndexOf('=') + 1));
  // An interval is the same in all time zones. But without a cron expression, the zone would have no effect.
  if (timeZone !== undefined && everies.every(isInterval))
    throw new UsageError('--time-zone needs --once with a cron expression');
  for (const [at, every] of everies.entries()) {
    const job = once[at] ?? '';
    const name = job.slice(0, Math.max(0, job.length - every.length - 1));
    if (name === '')
      throw new UsageError(`--once must be a name and a schedule, such as "import=15m", got ${show(job)}`);
    if (schedules.has(name)) throw new UsageError(`--once has two schedules for ${show(name)}`);
    if (!name.startsWith(prefix))
      throw new UsageError(`--once must be for a name that begins with ${show(prefix)}, got ${show(name)}`);
    schedules.set(
      name,
      checked(() => scheduleFor(every, isInterval(every) ? undefined : timeZone)),
    );
  }
  return schedules;
}

/** Returns the options of a client for each store that is shown. */
function storesOf(command: Command): (StoreOptions & { readonly api: 'v2' | 'v3' })[] {
  const { api = 'v2', ...options } = clientOptions(connectionOf(command));
  return (api === 'both' ? (['v2', 'v3'] as const) : [api]).map((each) => ({ ...options, api: each }));
}

async function ui(prefix: string, flags: Flags, command: Command): Promise<number> {
  const listening = listeningOf(flags);
  const schedules = schedulesOf(flags, prefix);
  const stores = storesOf(command).map((options) => {
    const client = checked(() => new EtcdClient(options));
    return { options, api: options.api, client, model: new LiveModel({ api: options.api, prefix }) };
  });
  try {
    for (const { client } of stores) checked(() => client.surveyor.checkPrefix(prefix));
    for (const { client } of stores) for (const name of schedules.keys()) checked(() => client.store.marker(name));
    return await untilSignalled((signal) => serve(stores, { ...flags, prefix, schedules, listening, signal }));
  } finally {
    await Promise.all(stores.map(({ client }) => client.close()));
  }
}

interface Store {
  readonly options: StoreOptions;
  readonly api: 'v2' | 'v3';
  readonly client: EtcdClient;
  readonly model: LiveModel;
}

interface Serving extends Pick<Flags, 'listen' | 'allowRelease' | 'json'> {
  readonly prefix: string;
  readonly schedules: ReadonlyMap<string, Schedule>;
  readonly listening: UiOptions;
  readonly signal: AbortSignal;
}

/** Follows all stores, and serves the page once all have been listed. Resolves when the signal aborts, and rejects if a store fails. */
async function serve(
  stores: readonly Store[],
  { prefix, schedules, listening, signal, listen, ...flags }: Serving,
): Promise<number> {
  const { allowRelease = false, json } = flags;
  const viewers = new Viewers(stores, { mayRelease: allowRelease });
  const surveyors = stores.map(({ api, client: { surveyor } }) => ({ api, surveyor }));
  const jobs = new Jobs(stores.map(jobStoreOf), prefix, schedules);
  const reports: Reports =
    prefix === ''
      ? { checks: checksReport(stores.map(({ options }) => options)), move: moveOf(stores) }
      : { checks: FOR_ALL, move: FOR_ALL };
  const releases = allowRelease ? new Releases(surveyors, { prefix, onRemoved: complain }) : undefined;
  const end = new AbortController();
  let listed = (): void => {};
  const all = new Promise<void>((resolve) => {
    listed = resolve;
  });
  const onChange = (): void => {
    if (stores.every(({ model }) => model.seenAt !== undefined)) listed();
    viewers.changed();
  };
  const failed = Promise.all(
    stores.map(({ api, client, model }) =>
      keepLive(client.surveyor, model, {
        prefix,
        signal: end.signal,
        onChange,
        shown: () => viewers.shown(api),
        isSeen: () => viewers.count > 0,
      }),
    ),
  );
  const ended = aborted(signal);
  try {
    await Promise.race([all, failed, ended]);
    if (signal.aborted) return ExitCode.ok;
    const server = await start({ viewers, jobs, reports, releases, page: readPage() }, listening, listen);
    try {
      if (json) printJson({ url: server.url, pid: process.pid });
      else print(server.url);
      remark(`to stop the page, press ^C or run: kill ${process.pid}`);
      await Promise.race([failed, ended]);
    } finally {
      await server.stop();
    }
    return ExitCode.ok;
  } finally {
    end.abort();
    viewers.stop();
    await failed.catch(ignore);
  }
}

/** Why there are no reports: they name locks that are not shown. */
const FOR_ALL = 'the cluster is checked for all locks: start "ui" without a prefix';

function moveOf(stores: readonly Store[]): Report {
  const [v2, v3] = stores;
  if (!v2 || !v3) return 'a move is between two stores: start "ui" with --api both';
  return moveReport(
    checked(() => accessBy(v2.options)),
    { v2: v2.client.surveyor, v3: v3.client.surveyor },
  );
}

const jobStoreOf = ({ api, client: { surveyor, store } }: Store): JobStore => ({
  api,
  surveyor,
  marker: async (name) => (await store.marker(name).read({}))?.value,
});

async function start(data: UiData, listening: UiOptions, listen: string): Promise<UiServer> {
  try {
    return await UiServer.start(data, listening);
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
    throw new Error(`cannot listen on ${listen}: ${error.message}. Try another --listen.`);
  }
}
