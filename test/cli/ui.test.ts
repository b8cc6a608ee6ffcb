import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startPython } from '../../compat/python.ts';
import type { ShownJobs, Snapshot } from '../../src/cli/ui/shapes.ts';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { runCli } from '../support/cli.ts';
import { closedEndpoint } from '../support/clients.ts';
import { lockByEtcdctl } from '../support/etcdctl.mjs';
import { useProxy } from '../support/locks.ts';
import { useLockName } from '../support/queues.ts';
import { temporaryDirectory } from '../support/temporary.ts';
import { ask, follow, startUi } from '../support/ui.ts';
import { until } from '../support/until.ts';

const APIS = ['v2', 'v3'] as const;
const TOKEN = 'a-token-of-the-tests';

function useLocks(api: 'v2' | 'v3'): LockManager {
  const client = new EtcdClient({ endpoints: inject('etcd'), api });
  onTestFinished(() => client.close());
  return new LockManager(client, { ttl: 30, label: 'web-1:17' });
}

test('ui prints its URL, serves the page there, and ends with a signal', async () => {
  const ui = await startUi([]);
  expect(ui.line).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
  const page = await ask(ui.line);
  expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
  // Whatever the page names is there, and there is nothing else that it needs.
  const names = [...page.body.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, name]) => name);
  expect(names.sort()).toEqual(['icon.svg', 'page.css', 'page.js']);
  for (const name of names) expect((await ask(`${ui.line}/${name}`)).status).toBe(200);
  ui.process.kill('SIGTERM');
  expect(await ui.result).toMatchObject({ code: 143, stderr: '' });
});

test('ui --json prints its URL and process ID', async () => {
  const { line, process } = await startUi(['--json']);
  expect(JSON.parse(line)).toEqual({ url: expect.stringMatching(/^http:/), pid: process.pid });
});

test.each(APIS)('a viewer sees on %s within a second who holds a lock and who waits', async (api) => {
  const name = useLockName();
  const { line: url } = await startUi(['--api', api, name]);
  const events = await follow(`${url}/api/events?lock=${name}`);
  await events.next('lock');
  const seen = async (shape: object): Promise<void> => {
    const since = performance.now();
    await until(
      () => events.events.at(-1)?.data,
      (data) => JSON.stringify(data).includes('"queues"') && expect.objectContaining(shape).asymmetricMatch(data),
    );
    expect(performance.now() - since).toBeLessThan(1000);
  };
  const queue = (holders: number, waiters: number) => ({
    queues: [expect.objectContaining({ api, holders, waiters })],
  });
  const [locks, others] = [useLocks(api), useLocks(api)];
  const held = await locks.acquire(name);
  await seen(queue(1, 0));
  const waiting = others.acquire(name);
  await seen(queue(1, 1));
  await held.release();
  const next = await waiting;
  await seen(queue(1, 0));
  await next.release();
  await seen({ queues: [] });
});

test('ui --api both shows python-etcd on v2 beside etcdctl on v3', async () => {
  const name = useLockName();
  const { line: url } = await startUi(['--api', 'both', name]);
  const python = await startPython(inject('etcd'));
  onTestFinished(() => python.kill());
  await (await python.lock(name)).hold({ lockTtl: 600 });
  const etcdctl = lockByEtcdctl(`/_locks/${name}`, { endpoints: [inject('etcd')], ttl: 30 });
  onTestFinished(() => etcdctl.kill());
  const { locks } = await until(
    async () => JSON.parse((await ask(`${url}/api/locks`)).body) as Snapshot,
    (snapshot) => snapshot.locks.length === 2,
  );
  expect(locks.map((lock) => [lock.api, lock.name, lock.holder.kind])).toEqual([
    ['v2', name, 'python-etcd'],
    ['v3', name, 'Go'],
  ]);
});

test('ui shows the jobs of etcd v3 that run once per tick, and says that v2 does not list them', async () => {
  const name = useLockName();
  const { line: url } = await startUi(['--api', 'both', name]);
  const job = ['run', name, '--once', '1h', '--label', 'db-3', '--', 'true'];
  expect((await runCli(['--api', 'v3', ...job], { ETCD_ENDPOINTS: inject('etcd') })).code).toBe(0);
  const { jobs, unlisted } = await until(
    async () => JSON.parse((await ask(`${url}/api/jobs`)).body) as ShownJobs,
    (shown) => shown.jobs.length === 1,
  );
  expect(unlisted).toEqual(['v2']);
  expect(jobs).toMatchObject([{ api: 'v3', name, state: 'ran', host: 'db-3', missed: null }]);
});

test.each(APIS)('ui --once shows on etcd %s how many ticks of a job were missed, in its time zone', async (api) => {
  const [name, never] = [useLockName(), useLockName()];
  const job = ['run', name, '--once', '@hourly', '--label', 'db-3', '--', 'true'];
  expect((await runCli(['--api', api, ...job], { ETCD_ENDPOINTS: inject('etcd') })).code).toBe(0);
  const flags = ['--once', `${name}=@hourly`, '--once', `${never}=15m`, '--time-zone', 'Europe/Berlin'];
  const { line: url } = await startUi(['--api', api, ...flags, 'test-']);
  const { jobs } = JSON.parse((await ask(`${url}/api/jobs`)).body) as ShownJobs;
  const shown = jobs.filter((each) => each.name === name || each.name === never);
  expect(shown).toMatchObject([
    { api, name, state: 'ran', host: 'db-3', missed: expect.toBeOneOf([0, 1]) },
    { api, name: never, state: 'no record', missed: null },
  ]);
});

test('ui says in the page when etcd is lost, and continues afterwards', async () => {
  const name = useLockName();
  const proxy = await useProxy();
  const { line: url } = await startUi([name], proxy.url);
  const events = await follow(`${url}/api/events?lock=${name}`);
  await events.next('lock');
  const recover = proxy.intercept(() => ({ refuse: true }));
  const last = () => events.events.findLast(({ event }) => event === 'lock')?.data as Snapshot | undefined;
  await until(last, (data) => data?.stores[0]?.outage !== null);
  const held = await useLocks('v2').acquire(name);
  recover();
  const queues = () => last() as unknown as { readonly queues: readonly unknown[] };
  await until(queues, (data) => data.queues.length === 1);
  expect(last()?.stores[0]?.outage).toBeNull();
  await held.release();
});

test('ui on an address for all needs the token of a file', async () => {
  const file = join(temporaryDirectory(), 'token');
  writeFileSync(file, `${TOKEN}\n`);
  const { line } = await startUi(['--listen', '0.0.0.0:0', '--token-file', file]);
  expect((await ask(line)).status).toBe(401);
  expect((await ask(line, { authorization: `Bearer ${TOKEN}` })).status).toBe(200);
});

test.each([
  [['--listen', '0.0.0.0:0'], /with --listen 0\.0\.0\.0:0, other machines can open the page: use --token-file/],
  [['--listen', '[::]:0'], /other machines can open the page/],
  [['--listen', 'locks.example.org:80'], /other machines can open the page/],
  [['--listen', '4080'], /--listen must be an address and a port, got "4080"/],
  [['--listen', '127.0.0.1:99999'], /port must be at most 65535, got 99999/],
  [['--token', 'short'], /the token must have 16 to 200 characters .*, got 5 characters/],
  [['--token', 'spaces are not good'], /the token must have/],
  [['--token', TOKEN, '--token-file', '/dev/null'], /cannot be used together/],
  [['--token-file', '/dev/null'], /no token in \/dev\/null: its first line is empty/],
  [['--listen-ca', 'package.json'], /both --listen-cert and --listen-key are needed/],
  [['--once', 'import'], /--once must be a name and a schedule, such as "import=15m", got "import"/],
  [['--once', '=1h'], /--once must be a name and a schedule, such as "import=15m", got "=1h"/],
  [['--once', 'import=1x'], /--once must be an interval .*, got "1x"/],
  [['--once', 'a=b=1h', '--once', 'a=b=2h'], /--once has two schedules for "a=b"/],
  [['--once', 'import=1h', 'jobs/'], /--once must be for a name that begins with "jobs\/", got "import"/],
  [['--once', 'a//b=1h'], /lock name/],
  [['--once', 'a=0 3 * * *', '--time-zone', 'Mars'], /--time-zone must be an IANA name .*, got "Mars"/],
  [['--once', 'a=1h', '--time-zone', 'Europe/Berlin'], /--time-zone needs --once with a cron expression/],
  [['--time-zone', 'Europe/Berlin'], /--time-zone needs --once with a cron expression/],
  [['/prefix'], /lock name must not be empty/],
] as const)('ui %j is refused before any request', async (args, message) => {
  const { code, stderr } = await runCli(['ui', ...args], { ETCD_ENDPOINTS: await closedEndpoint() });
  expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringMatching(message) });
  expect(stderr).not.toContain('spaces are');
});

test('ui ends with 69 if etcd does not answer at the start, and with 125 if it cannot listen', async () => {
  const { code, stderr } = await runCli(['ui', '--listen', '127.0.0.1:0'], { ETCD_ENDPOINTS: await closedEndpoint() });
  expect({ code, stderr }).toMatchObject({ code: 69, stderr: expect.stringContaining('ECONNREFUSED') });
  const { line } = await startUi([]);
  const port = new URL(line).port;
  const taken = await runCli(['ui', '--listen', `127.0.0.1:${port}`], { ETCD_ENDPOINTS: inject('etcd') });
  expect(taken).toMatchObject({
    code: 125,
    stderr: expect.stringMatching(/cannot listen on .*EADDRINUSE.* Try another --listen/),
  });
});
