// What ui --allow-release removes for viewers, and what it refuses.
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import type { ShownPlan, ShownQueue } from '../../src/cli/ui/shapes.ts';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { enqueue, useLockName } from '../support/queues.ts';
import { RawConnection } from '../support/raw-connection.ts';
import { ask, entryOf, startUi, type Ui, useUi, write } from '../support/ui.ts';
import { until } from '../support/until.ts';

const TOKEN = 'correct-horse+battery=staple';
const NAME = 'jobs/nightly report';
const [HOLDER, WAITER] = [entryOf(NAME, 1, 'id:web-1:u1', 30), entryOf(NAME, 2, 'u2', 30)];

type Body = Readonly<Record<string, unknown>>;

const bodyFor = ({ key, uuid }: { readonly key: string; readonly uuid: string }, more: Body = {}): Body => ({
  name: NAME,
  api: 'v2',
  key,
  uuid,
  ...more,
});

const ownHeaders = (url: string): Record<string, string> => ({
  'content-type': 'application/json',
  origin: new URL(url).origin,
});

/** Sends what the page sends. */
const release = (url: string, body: unknown, headers = ownHeaders(url)) =>
  ask(`${url}/api/release`, headers, 'POST', typeof body === 'string' ? body : JSON.stringify(body));

const planFor = (url: string, entry: typeof HOLDER, headers = {}) =>
  ask(`${url}/api/release?${new URLSearchParams(bodyFor(entry) as Record<string, string>)}`, headers);

/** Serves a lock with a holder and a waiter. */
async function useQueue(options: Parameters<typeof useUi>[0] = {}): Promise<Ui> {
  const ui = await useUi({ mayRelease: true, ...options });
  write(ui, HOLDER);
  write(ui, WAITER);
  return ui;
}

test('a waiter is removed after a question, which says what that means', async () => {
  const { url, removed } = await useQueue();
  const plan = await planFor(url, WAITER);
  expect(plan.status).toBe(200);
  expect(JSON.parse(plan.body) as ShownPlan).toEqual({
    entry: `${WAITER.key}: exclusive, u2, 30 s left`,
    isHolder: false,
    consequence: expect.stringMatching(/^To end the wait of a waiter, stop its process/),
  });
  expect(removed).toEqual([]);
  const { status, body } = await release(url, bodyFor(WAITER));
  expect([status, JSON.parse(body)]).toEqual([200, { isRemoved: true, text: `${WAITER.key} removed.` }]);
  expect(removed).toEqual([WAITER.key]);
});

test('a holder is removed with "force" only, and the plan says who gets the lock', async () => {
  const { url, removed } = await useQueue();
  expect(JSON.parse((await planFor(url, HOLDER)).body)).toMatchObject({
    isHolder: true,
    consequence: expect.stringMatching(/the lock passes to u2 at once\. web-1 continues to work until it notices/),
  });
  for (const more of [{}, { force: false }]) {
    const { status, body } = await release(url, bodyFor(HOLDER, more));
    expect([status, JSON.parse(body)]).toEqual([
      409,
      { isRemoved: false, text: `${HOLDER.key} was not removed: it holds the lock, and "force" is not true.` },
    ]);
  }
  expect(removed).toEqual([]);
  expect((await release(url, bodyFor(HOLDER, { force: true }))).status).toBe(200);
  expect(removed).toEqual([HOLDER.key]);
});

describe('nothing is removed', () => {
  test('without --allow-release, and the page is not offered it', async () => {
    const { url, removed } = await useQueue({ mayRelease: false });
    const { status, headers } = await release(url, bodyFor(WAITER));
    expect([status, headers.allow]).toEqual([405, 'GET']);
    expect((await planFor(url, WAITER)).status).toBe(404);
    const { mayRelease } = JSON.parse((await ask(`${url}/api/locks/${encodeURIComponent(NAME)}`)).body) as ShownQueue;
    expect([mayRelease, removed]).toEqual([false, []]);
  });

  test('by another method, or at another address', async () => {
    const { url, removed } = await useQueue();
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD']) {
      const { status, headers } = await ask(`${url}/api/release`, ownHeaders(url), method);
      expect([status, headers.allow]).toEqual([405, 'GET, POST']);
    }
    for (const path of ['/', '/api/locks', '/api/locks/x', '/api/release/', '/api/events', '/page.js'])
      expect((await ask(`${url}${path}`, ownHeaders(url), 'POST', JSON.stringify(bodyFor(WAITER)))).status).toBe(405);
    expect(removed).toEqual([]);
  });

  test('for another site, after DNS rebinding, or for a form', async () => {
    const { url, removed } = await useQueue();
    const own = ownHeaders(url);
    const json = { 'content-type': 'application/json' };
    const foreign: Record<string, string>[] = [
      { ...own, origin: 'http://evil.example' },
      { ...own, origin: 'null' },
      { ...own, origin: 'http://127.0.0.1:1' },
      { ...own, host: 'evil.example:4080' },
      { ...own, host: 'evil.example:4080', origin: 'http://evil.example:4080' },
      { ...own, 'sec-fetch-site': 'cross-site' },
      { ...own, 'sec-fetch-site': 'same-site' },
      { ...json, 'sec-fetch-site': 'same-site' },
      { ...json, 'sec-fetch-site': 'none' },
      json,
      { origin: new URL(url).origin },
      { ...own, 'content-type': 'text/plain' },
      { ...own, 'content-type': 'application/x-www-form-urlencoded' },
      { ...own, 'content-type': 'text/plain; application/json' },
      { ...own, 'content-type': 'application/jsonx' },
    ];
    for (const headers of foreign)
      expect([headers, (await release(url, bodyFor(WAITER), headers)).status]).toEqual([headers, 403]);
    expect(removed).toEqual([]);
    // What a browser sends for the page, also without an origin.
    const page = { 'content-type': 'application/json; charset=utf-8', 'sec-fetch-site': 'same-origin' };
    expect((await release(url, bodyFor(WAITER), page)).status).toBe(200);
  });

  test('without the token, or with another one', async () => {
    const { url, removed } = await useQueue({ token: TOKEN });
    const own = ownHeaders(url);
    for (const headers of [
      own,
      { ...own, authorization: `Bearer ${TOKEN}x` },
      { ...own, cookie: `etcd-v2-lock-ui=${TOKEN}` },
    ])
      expect((await release(url, bodyFor(WAITER), headers)).status).toBe(401);
    expect((await ask(`${url}/api/release?token=${encodeURIComponent(TOKEN)}`, own, 'POST', '{}')).status).toBe(401);
    expect((await planFor(url, WAITER)).status).toBe(401);
    expect(removed).toEqual([]);
    expect((await release(url, bodyFor(WAITER), { ...own, authorization: `Bearer ${TOKEN}` })).status).toBe(200);
  });

  test('for a body that is too long, without reading its rest', async () => {
    const { url, removed } = await useQueue();
    const { status } = await release(url, bodyFor(WAITER, { name: 'x'.repeat(20_000) }));
    expect(status).toBe(413);
    const connection = await RawConnection.open(url);
    const head = Object.entries(ownHeaders(url)).map(([name, value]) => `${name}: ${value}\r\n`);
    connection.send(
      `POST /api/release HTTP/1.1\r\nHost: ${new URL(url).host}\r\n${head.join('')}Content-Length: 1000000000\r\n\r\n${'x'.repeat(20_000)}`,
    );
    const [answer] = await connection.wholeAnswers(1);
    expect(answer?.status).toBe(413);
    await until(
      () => connection.socket.closed || connection.socket.readableEnded,
      (isOver) => isOver,
    );
    expect(removed).toEqual([]);
  });

  test.each([
    '',
    'x',
    'null',
    '[]',
    '"x"',
    '{}',
    JSON.stringify({ ...bodyFor(WAITER), force: 'true' }),
    JSON.stringify({ ...bodyFor(WAITER), force: 1 }),
    JSON.stringify({ ...bodyFor(WAITER), uuid: undefined }),
    JSON.stringify({ ...bodyFor(WAITER), key: [WAITER.key] }),
    JSON.stringify({ ...bodyFor(WAITER), more: 1 }),
  ])('for a body such as %j', async (body) => {
    const { url, removed } = await useQueue();
    expect((await release(url, body)).status).toBe(400);
    expect(removed).toEqual([]);
  });

  test('for a GET that wants to force', async () => {
    const { url } = await useQueue();
    const query = new URLSearchParams({ ...(bodyFor(HOLDER) as Record<string, string>), force: 'true' });
    expect((await ask(`${url}/api/release?${query}`)).status).toBe(400);
  });

  test.each([
    ['another key', { key: `${WAITER.key}0` }],
    ['the key of another entry', { key: HOLDER.key }],
    ['another uuid, as after its value has changed', { uuid: 'u3' }],
    ['an empty uuid', { uuid: '' }],
    ['another lock', { name: 'other' }],
    ['a store that is not shown', { api: 'v3' }],
    ['a store that does not exist', { api: '__proto__' }],
  ])('for %s', async (_what, more) => {
    const { url, removed } = await useQueue();
    const { status, body } = await release(url, bodyFor(WAITER, { ...more, force: true }));
    expect([status, JSON.parse(body)]).toMatchObject([404, { isRemoved: false }]);
    expect(removed).toEqual([]);
  });
});

test.each([
  ['changed', 409, /was not removed: its value has changed since it was read/],
  ['gone', 409, /was not removed: it had already been released or had expired/],
  ['present', 409, /still exists\. The answer to the removal was lost/],
  ['absent', 200, /is gone\. The answer to the removal was lost/],
] as const)('an entry that is "%s" gets status %d, and the text of the command', async (removal, expected, text) => {
  const { url } = await useQueue({ removal });
  const { status, body } = await release(url, bodyFor(WAITER));
  expect([status, JSON.parse(body)]).toEqual([
    expected,
    { isRemoved: expected === 200, text: expect.stringMatching(text) },
  ]);
});

describe.each(['v2', 'v3'] as const)('ui --allow-release on etcd %s', (api) => {
  test('removes a waiter and a holder of this package, and says so on stderr', async () => {
    const name = useLockName();
    const ui = await startUi(['--api', api, '--allow-release', name]);
    const [first, second] = [0, 1].map(() => {
      const client = new EtcdClient({ endpoints: inject('etcd'), api });
      onTestFinished(() => client.close());
      return new LockManager(client, { ttl: 30 });
    });
    const held = await first?.acquire(name);
    const end = new AbortController();
    const waiting = second?.acquire(name, { signal: end.signal });
    waiting?.catch(() => {});
    const entries = async () =>
      (JSON.parse((await ask(`${ui.line}/api/locks/${name}`)).body) as ShownQueue).queues.flatMap(
        (queue) => queue.entries,
      );
    const [holder] = await until(entries, (all) => all.length === 2);
    const { status } = await release(ui.line, { name, api, key: holder?.key, uuid: holder?.uuid, force: true });
    expect(status).toBe(200);
    // Its holder notices it, and the waiter gets the lock.
    const next = await waiting;
    await until(
      () => held?.signal.aborted,
      (isLost) => isLost === true,
    );
    await held?.release();
    await next?.release();
    ui.process.kill('SIGTERM');
    expect((await ui.result).stderr).toMatch(
      new RegExp(`^etcd-v2-lock: for 127\\.0\\.0\\.1: ${holder?.key} removed\\. It was .*\\n$`),
    );
  });
});

test('ui with a prefix releases no other lock', async () => {
  const [name, other] = [useLockName(), useLockName()];
  const key = await enqueue(other, 'u1');
  const { line: url } = await startUi(['--allow-release', name]);
  const { status } = await release(url, { name: other, api: 'v2', key, uuid: 'u1', force: true });
  expect(status).toBe(404);
});
