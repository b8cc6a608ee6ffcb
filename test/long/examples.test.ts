import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { Lock, LockManager } from '../../src/index.ts';
import { escaped, queueOn, raw, untilQueued, useClient, useProxy } from '../support/locks.ts';
import { type RunningScript, type ScriptResult, startNode } from '../support/script.ts';
import { until } from '../support/until.ts';
import { COMPILE, runInUserProject, strictTsconfig } from '../support/user-project.ts';

const EXAMPLES = new URL('../../examples/', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, EXAMPLES), 'utf8');
const SCRIPTS = readdirSync(EXAMPLES).filter((file) => /\.m[jt]s$/.test(file));
/** These need further packages, whose declarations are not as strict. */
const WEB_FRAMEWORKS = ['express.mjs', 'fastify.mjs', 'nestjs.mts'];

/** Options to check JavaScript. */
const JAVASCRIPT = { allowJs: true, checkJs: true, noImplicitAny: false, useUnknownInCatchVariables: false };

const here = { ETCD_ENDPOINTS: inject('etcd') };

const start = (file: string, ...args: string[]): RunningScript => startNode([`examples/${file}`, ...args], here);

/** Expects this exit code and no output on stderr; resolves to the lines on stdout. */
async function linesOf(result: Promise<ScriptResult>, code = 0): Promise<string[]> {
  const { stdout, ...rest } = await result;
  expect(rest).toEqual({ code, signal: null, stderr: '' });
  return stdout.trimEnd().split('\n');
}

const run = (file: string): Promise<string[]> => linesOf(start(file).result);

/** Waits until the example has printed the line. */
const untilPrinted = (script: RunningScript, line: string): Promise<string> =>
  until(printedBy(script), (text) => text.split('\n').includes(line));

/** Returns a function that returns what the script has printed since this call. */
function printedBy({ process }: RunningScript): () => string {
  let printed = '';
  process.stdout.on('data', (chunk) => {
    printed += chunk;
  });
  return () => printed;
}

test('this file runs each example', () => {
  const source = readFileSync(new URL(import.meta.url), 'utf8');
  expect(SCRIPTS.length).toBeGreaterThan(5);
  expect(SCRIPTS.filter((file) => !source.includes(file))).toEqual([]);
});

test('recommended.mjs prints its report and leaves no entry in the queue', async () => {
  expect(await run('recommended.mjs')).toEqual([
    expect.stringMatching(/^report, written with token \d+$/),
    'nobody else held examples/report',
  ]);
  expect(await queueOn('examples/report')).toEqual([]);
});

test('cancellation.mjs ends three waits and leaves no entry in the queue', async () => {
  expect(await run('cancellation.mjs')).toEqual([
    'no longer waiting: the user left',
    'not within 0.2 s: held by us',
    'not available',
    '0 left in the queue',
  ]);
});

test('long-job.mjs runs all its steps', async () => {
  expect(await run('long-job.mjs')).toEqual(['step 1', 'step 2', 'step 3', 'step 4', 'step 5', 'done']);
});

test('long-job.mjs stops when it loses the lock', async () => {
  const job = start('long-job.mjs', '100000');
  await untilPrinted(job, 'step 1');
  const [entry] = await queueOn('examples/long-job');
  await raw('DELETE', entry?.key ?? '');
  const lines = await linesOf(job.result, 1);
  const steps = lines.slice(0, -1);
  expect(steps).toEqual(steps.map((_, index) => `step ${index + 1}`));
  expect(lines.at(-1)).toBe(
    `stopped: /_locks/examples/long-job is no longer held: ${entry?.key} is lost: its key is gone`,
  );
});

test('the database in fencing.mjs rejects a holder that has not noticed the loss of its lock', async () => {
  const [refusal = '', ...result] = await run('fencing.mjs');
  const [, highest, token] =
    /^refused: report has already accepted token (\d+), got the lower token (\d+)$/.exec(refusal) ?? [];
  expect(Number(highest)).toBeGreaterThan(Number(token));
  expect(result).toEqual(['the report was written by the next holder']);
});

test('semaphore.mjs never runs more than two workers at a time, and each of them once', async () => {
  const lines = await run('semaphore.mjs');
  let running = 0;
  for (const line of lines) {
    running += line.endsWith('begins') ? 1 : -1;
    expect(running).toBeLessThanOrEqual(2);
  }
  const done = lines.filter((line) => line.endsWith('is done')).toSorted();
  expect(done).toEqual(['a.mov', 'b.mov', 'c.mov', 'd.mov'].map((video) => `${video} is done`));
});

test('the writer in readers-and-writers.mjs runs alone, after the earlier readers and before the later one', async () => {
  const lines = await run('readers-and-writers.mjs');
  expect(lines.slice(0, 4).sort()).toEqual([
    'Ada begins to read',
    'Ada has read old',
    'Bob begins to read',
    'Bob has read old',
  ]);
  expect(lines.slice(4)).toEqual([
    'Eve begins to write',
    'Eve has written new',
    'Joe begins to read',
    'Joe has read new',
  ]);
});

test('election.mjs elects one of two instances, which all know, and the other one when it stops', async () => {
  const first = start('election.mjs', 'http://first');
  await untilPrinted(first, 'leading');
  const second = start('election.mjs', 'http://second');
  await untilPrinted(second, 'http://first leads');
  await untilQueued('examples/election', 2);
  const elected = Promise.all([untilPrinted(second, 'leading'), untilPrinted(second, 'http://second leads')]);
  first.process.kill('SIGTERM');
  expect(await linesOf(first.result)).toEqual(expect.arrayContaining(['http://first leads', 'leading', 'stopped']));
  await elected;
  second.process.kill('SIGTERM');
  const printed = ['http://first leads', 'leading', 'http://second leads', 'stopped'];
  expect((await linesOf(second.result)).toSorted()).toEqual(printed.toSorted());
  expect(await queueOn('examples/election')).toEqual([]);
});

/** Starts an example that serves HTTP. Resolves to its URL, and to a function that ends it. */
async function serveExample(file: string, etcd = inject('etcd')) {
  const server = startNode([`examples/${file}`], { ETCD_ENDPOINTS: etcd, PORT: '0' });
  const [url] = (await once(server.process.stdout.setEncoding('utf8'), 'data')) as [string];
  return {
    post: (path: string) => fetch(`${url.trim()}${path}`, { method: 'POST' }),
    async stop(stderr = '') {
      server.process.kill('SIGTERM');
      expect(await server.result).toEqual({ code: 0, signal: null, stdout: expect.any(String), stderr });
    },
  };
}

test('express.mjs writes a report under the lock, and answers 409 with the holder while another instance writes it', async () => {
  const { post, stop } = await serveExample('express.mjs');
  const answer = await post('/reports/ada');
  expect(await answer.json()).toEqual({ token: expect.stringMatching(/^\d+$/) });
  const held = await new LockManager(useClient(), { label: 'another' }).acquire('examples/reports/ada');
  const refused = await post('/reports/ada');
  expect([refused.status, await refused.json()]).toEqual([409, { error: 'the report is being written by another' }]);
  expect(await held.release()).toBe(true);
  await stop();
});

test('fastify.mjs converts two files at a time, and answers 503 to a third', async () => {
  const { post, stop } = await serveExample('fastify.mjs');
  const locks = new LockManager(useClient());
  const holds = [await locks.acquire('examples/conversions', { limit: 2 })];
  expect(await (await post('/convert/a')).json()).toEqual({ converted: 'a' });
  holds.push(await locks.acquire('examples/conversions', { limit: 2 }));
  const refused = await post('/convert/b');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  for (const held of holds) expect(await held.release()).toBe(true);
  await stop();
});

test('express.mjs and fastify.mjs print the keys that they leave when they stop in an outage', async () => {
  const proxy = await useProxy();
  proxy.intercept(({ method }) => (method === 'DELETE' ? { silent: true } : undefined));
  const stopped = [
    ['express.mjs', '/reports/eve', 'examples/reports/eve'],
    ['fastify.mjs', '/convert/eve', 'examples/conversions'],
  ] as const;
  await Promise.all(
    stopped.map(async ([file, path, lock]) => {
      const { post, stop } = await serveExample(file, proxy.url);
      expect((await post(path)).status).toBe(200);
      const [left] = await queueOn(lock);
      await stop(`closed after 5 s; these keys may stay until their TTL has passed: ${left?.key}\n`);
      await raw('DELETE', left?.key ?? '');
    }),
  );
});

test('worker.mjs runs each job under the locks of both accounts, so that no amount is lost', async () => {
  const lines = await run('worker.mjs');
  expect(lines.slice(0, -1).toSorted()).toEqual([
    '10 from ada to bob',
    '20 from bob to ada',
    '30 from eve to ada',
    '40 from bob to eve',
  ]);
  expect(JSON.parse(lines.at(-1) ?? '')).toEqual({ ada: 140, bob: 50, eve: 110 });
});

test('the examples for web frameworks compile, and nestjs.mts runs the method of the service under the lock', async () => {
  const project = {
    ...Object.fromEntries(WEB_FRAMEWORKS.map((file) => [file, read(file)])),
    // express has no type declarations.
    'express.d.ts': "declare module 'express';",
    'tsconfig.json': strictTsconfig({ ...JAVASCRIPT, experimentalDecorators: true, skipLibCheck: true }),
  };
  const packages = ['fastify', '@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs'];
  const { code, output } = await runInUserProject(project, [COMPILE, ['out/nestjs.mjs']], here, packages);
  expect({ code, output }).toEqual({ code: 0, output: 'the report of Monday is written by the holder\n' });
  expect(await queueOn('examples/nightly')).toEqual([]);
});

test('shutdown.mjs releases its lock and exits on SIGTERM', async () => {
  const worker = start('shutdown.mjs');
  await untilPrinted(worker, 'working');
  expect(await queueOn('examples/worker')).toHaveLength(1);
  worker.process.kill('SIGTERM');
  expect(await linesOf(worker.result)).toEqual(['working', 'stopped']);
  expect(await queueOn('examples/worker')).toEqual([]);
});

test('shutdown.mjs removes its entry and exits on SIGTERM while it waits', async () => {
  const other = new Lock(useClient(), 'examples/worker');
  await other.acquire();
  const worker = start('shutdown.mjs');
  await untilQueued('examples/worker', 2);
  worker.process.kill('SIGTERM');
  expect(await linesOf(worker.result)).toEqual(['stopped']);
  expect(await queueOn('examples/worker')).toMatchObject([{ key: other.lockKey }]);
  await other.release();
});

test('shutdown.mjs exits with 1 when it loses the lock', async () => {
  const worker = start('shutdown.mjs');
  await untilPrinted(worker, 'working');
  const [entry] = await queueOn('examples/worker');
  await raw('PUT', entry?.key ?? '', { value: 'somebody else' });
  const [[code]] = await Promise.all([once(worker.process, 'exit'), worker.result]);
  expect(code).toBe(1);
  await raw('DELETE', entry?.key ?? '');
});

test('once.mjs, on two hosts, runs each tick on one of them, and stops on SIGTERM', async () => {
  const hosts = [start('once.mjs'), start('once.mjs')];
  const printed = hosts.map(printedBy);
  await until(
    () => printed.map((text) => text()),
    (texts) => texts.every((text) => text !== '') && texts.some((text) => text.includes('written with token')),
  );
  for (const { process } of hosts) process.kill('SIGTERM');
  const lines = (await Promise.all(hosts.map(({ result }) => linesOf(result)))).flat();
  expect(lines.filter((line) => line === 'stopped')).toHaveLength(2);
  const ticks = lines.flatMap((line) => /^report for (\S+), written with token \d+$/.exec(line)?.[1] ?? []);
  expect(ticks.length).toBeGreaterThan(0);
  expect(new Set(ticks).size).toBe(ticks.length);
  expect(await queueOn('examples/once')).toEqual([]);
  await raw('DELETE', escaped('/_locks_ticks:examples%2Fonce'));
});

test('try-finally.mjs holds the lock to the end and releases it in its finally block', async () => {
  expect(await run('try-finally.mjs')).toEqual(['examples/open is held', 'held to the end']);
  expect(await queueOn('examples/open')).toEqual([]);
});

test('metrics.mjs reports the times of a hold and of a loss', async () => {
  const lines = (await run('metrics.mjs')).map((line) => line.replaceAll(/\d+(?:\.\d+)?(?:e-\d+)?/g, '<n>'));
  const begin = ['wait: examples/metrics, exclusive', 'held: examples/metrics after <n> s, token <n>'];
  const released = 'released: examples/metrics after <n> s, undefined';
  expect(lines).toEqual([
    ...begin,
    released,
    ...begin,
    'lost: examples/metrics after <n> s, ETCD_LOCK_LOST',
    released,
    'error: examples/metrics, ABORT_ERR',
    expect.stringMatching('its key is gone'),
  ]);
});

test('all other examples compile in strict mode, and await-using.mts releases its lock at the end of the block', async () => {
  const files = SCRIPTS.filter((file) => !WEB_FRAMEWORKS.includes(file));
  const project = {
    ...Object.fromEntries(files.map((file) => [file, read(file)])),
    // sql.js has no type declarations.
    'sql.d.ts': "declare module 'sql.js';",
    'tsconfig.json': strictTsconfig(JAVASCRIPT),
  };
  const { code, output } = await runInUserProject(project, [COMPILE, ['out/await-using.mjs']], here);
  expect({ code, output }).toEqual({ code: 0, output: 'examples/open is held\nheld again\n' });
  expect(await queueOn('examples/open')).toEqual([]);
});
