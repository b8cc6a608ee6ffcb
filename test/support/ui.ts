import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect, inject, onTestFinished } from 'vitest';
import { LiveModel, liveIn } from '../../src/cli/live/model.ts';
import { Jobs } from '../../src/cli/ui/jobs.ts';
import type { PageFile } from '../../src/cli/ui/page-files.ts';
import { type ReleaseStore, Releases } from '../../src/cli/ui/release/releases.ts';
import type { Reports } from '../../src/cli/ui/reports.ts';
import { type UiOptions, UiServer } from '../../src/cli/ui/server.ts';
import { Viewers, type ViewersOptions } from '../../src/cli/ui/viewers.ts';
import type { Schedule } from '../../src/manager/once/schedule.ts';
import { type KeyChange, type ParsedEntry, parsed, type Removal } from '../../src/recipe/survey.ts';
import { startCli } from './cli.ts';
import { until } from './until.ts';

/** The page as the tests of the server have it: the real one needs a build. */
export const PAGE = new Map([
  ['/', { type: 'text/html; charset=utf-8', content: Buffer.from('the page') }],
  ['/page.js', { type: 'text/javascript; charset=utf-8', content: Buffer.from('the program') }],
]);

export interface Ui {
  /** The records of jobs, by their name. */
  readonly records: Map<string, string>;
  readonly url: string;
  readonly server: UiServer;
  readonly viewers: Viewers;
  readonly model: LiveModel;
  /** The keys of the entries that viewers have removed. */
  readonly removed: readonly string[];
}

interface UseUiOptions extends Partial<UiOptions>, ViewersOptions {
  /** Default: reports that cannot be made. */
  readonly reports?: Reports;
  /** Schedules of jobs, by their name. */
  readonly schedules?: ReadonlyMap<string, Schedule>;
  /** What a removal results in. Default: "removed", and the model sees it. */
  readonly removal?: Removal;
  /** Default {@link PAGE}. */
  readonly page?: ReadonlyMap<string, PageFile>;
}

/** Serves a model in memory, which knows no lock at first, until the end of the test. */
export async function useUi({
  page = PAGE,
  removal,
  schedules,
  reports = { checks: 'no checks', move: 'no move' },
  ...options
}: UseUiOptions = {}): Promise<Ui> {
  const model = new LiveModel({ api: 'v2', prefix: '' });
  model.listed({ queues: [], index: 1, clusterId: 'c' }, Date.now());
  const viewers = new Viewers([{ api: 'v2', model }], options);
  const records = new Map<string, string>();
  const removed: string[] = [];
  const jobs = new Jobs(
    [{ api: 'v3', surveyor: { markers: async () => records }, marker: async (name) => records.get(name) }],
    '',
    schedules,
  );
  const surveyor: ReleaseStore['surveyor'] = {
    checkName() {},
    async lock(name) {
      const lock = model.locks.find((each) => each.name === name);
      const entries = liveIn(lock).map(({ entry }) => entry);
      return { queue: { name, path: lock?.path ?? '', entries, ignored: [] }, index: 1, clusterId: 'c' };
    },
    async remove(entry) {
      if (removal !== undefined) return removal;
      removed.push(entry.key);
      remove({ model, viewers }, entry);
      return 'removed';
    },
  };
  const releases = options.mayRelease
    ? new Releases([{ api: 'v2', surveyor }], { prefix: '', onRemoved() {} })
    : undefined;
  const data = { viewers, jobs, reports, releases, page };
  const server = await UiServer.start(data, { host: '127.0.0.1', port: 0, ...options });
  onTestFinished(() => server.stop());
  return { records, url: server.url, server, viewers, model, removed };
}

/** Starts `ui` on any free port, and kills it after the test. Resolves to what it has printed. */
export async function startUi(args: readonly string[], etcd = inject('etcd')) {
  const cli = startCli(['ui', '--listen', '127.0.0.1:0', ...args], { ETCD_ENDPOINTS: etcd });
  onTestFinished(() => void cli.process.kill('SIGKILL'));
  let stdout = '';
  cli.process.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  const line = until(
    () => stdout,
    (text) => text.endsWith('\n'),
  );
  const ended = cli.result.then(({ code, stderr }) => expect.unreachable(`exit code ${code}: ${stderr}`));
  ended.catch(() => {});
  return { ...cli, line: (await Promise.race([line, ended])).trimEnd() };
}

export const entryOf = (name: string, rank: number, value: string, ttl?: number): ParsedEntry =>
  parsed(name, { key: `/_locks/${name}/${String(rank).padStart(20, '0')}`, value, rank: BigInt(rank), ttl });

/** Makes the model see that an entry was added or renewed. */
export function write({ model, viewers }: Ui, entry: ParsedEntry): void {
  const change: KeyChange = { how: 'written', key: entry.key, entry, index: 2 };
  model.changed(change, Date.now());
  viewers.changed();
}

/** Makes the model see that an entry was removed. */
export function remove({ model, viewers }: Pick<Ui, 'model' | 'viewers'>, { key }: ParsedEntry): void {
  model.changed({ how: 'removed', key, index: 3 }, Date.now());
  viewers.changed();
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Sends a request with any headers, also with those that `fetch` sets itself. */
export async function ask(
  url: string,
  headers: Record<string, string> = {},
  method = 'GET',
  content?: string,
): Promise<Answer> {
  const sent = request(url, { headers, method, agent: false }).end(content);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  let body = '';
  for await (const chunk of answer.setEncoding('utf8')) body += chunk;
  return { status: answer.statusCode ?? 0, headers: answer.headers, body };
}

/** A stream of server-sent events. */
export interface Events {
  readonly answer: IncomingMessage;
  /** All that has arrived. */
  readonly events: readonly { readonly event: string; readonly data: never }[];
  /** Waits for the next event with this name, from the last one returned on. */
  next<T>(event: string): Promise<T>;
  /** Whether the server has ended the stream. */
  readonly isOver: boolean;
  close(): void;
}

/** Opens a stream; the end of the test closes it. */
export async function follow(url: string, headers: Record<string, string> = {}): Promise<Events> {
  const sent = request(url, { headers, agent: false }).end();
  sent.on('error', () => {});
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  onTestFinished(() => void sent.destroy());
  const events: { event: string; data: never }[] = [];
  let pieces: string[] = [];
  let taken = 0;
  let isOver = false;
  answer.on('error', () => {});
  answer.on('close', () => {
    isOver = true;
  });
  answer.setEncoding('utf8').on('data', (chunk: string) => {
    pieces.push(chunk);
    if (!chunk.endsWith('\n') && !chunk.includes('\n\n')) return;
    const parts = pieces.join('').split('\n\n');
    pieces = [parts.pop() ?? ''];
    for (const part of parts) {
      const [, event = '', json = ''] = /^event: (.*)\ndata: (.*)$/.exec(part) ?? [];
      events.push({ event, data: JSON.parse(json) as never });
    }
  });
  return {
    answer,
    events,
    async next<T>(name: string): Promise<T> {
      const at = await until(
        () => events.findIndex(({ event }, index) => index >= taken && event === name),
        (index) => index >= 0,
      );
      taken = at + 1;
      return events[at]?.data as T;
    },
    get isOver() {
      return isOver;
    },
    close: () => void sent.destroy(),
  };
}
