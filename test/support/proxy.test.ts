import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import { startEtcd } from './etcd.ts';
import { gate } from './gate.ts';
import { type EtcdProxy, type ProxiedRequest, startProxy } from './proxy.ts';
import { until } from './until.ts';

const etcd = inject('etcd');
let proxy: EtcdProxy;
let key: string;

beforeEach(async () => {
  proxy = await startProxy(etcd);
  key = `/v2/keys/proxy-test/${randomUUID()}`;
});

afterEach(async () => {
  await proxy.stop();
});

const isPut = (request: ProxiedRequest) => request.method === 'PUT';
const isPoll = (request: ProxiedRequest) => request.query.has('wait');

test('the proxy forwards and records a plain request, and returns its answer', async () => {
  const answer = await put(proxy.url, 'x');
  expect(answer.statusCode).toBe(201);
  expect(answer.headers['x-etcd-index']).toMatch(/^\d+$/);
  expect(await stored()).toBe('x');
  expect(proxy.requests).toMatchObject([{ method: 'PUT', path: key, body: 'value=x', status: 201 }]);
});

test('etcd applies a swallowed write, and the client sees a broken connection', async () => {
  proxy.intercept((request) => (isPut(request) ? { swallow: true } : undefined));
  const answered = proxy.next(isPut, 'answered');
  await expect(put(proxy.url, 'x')).rejects.toThrow('socket hang up');
  expect((await answered).status).toBe(201);
  expect(await stored()).toBe('x');
});

test('the proxy forwards a held write when its promise resolves, although the client has disconnected', async () => {
  let letGo = () => {};
  const hold = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  proxy.intercept((request) => (isPut(request) ? { hold } : undefined));
  const client = new AbortController();
  const arrived = proxy.next(isPut, 'arrived');
  const answered = proxy.next(isPut, 'answered');
  const write = put(proxy.url, 'x', client.signal);
  await arrived;
  client.abort();
  await expect(write).rejects.toThrow('aborted');
  await openSockets(0);
  expect(await stored()).toBeUndefined();
  letGo();
  expect((await answered).status).toBe(201);
  expect(await stored()).toBe('x');
});

test('a client that waits for its held write gets the answer', async () => {
  proxy.intercept((request) => (isPut(request) ? { hold: Promise.resolve() } : undefined));
  expect((await put(proxy.url, 'x')).statusCode).toBe(201);
});

test('the proxy answers a late write at once as the rule says, and forwards it when the promise resolves', async () => {
  const { opened, open } = gate();
  proxy.intercept((request) => (isPut(request) ? { late: opened, status: 500, body: { errorCode: 300 } } : undefined));
  const answered = proxy.next(isPut, 'answered');
  const answer = await fetch(`${proxy.url}${key}`, { method: 'PUT', body: new URLSearchParams({ value: 'late' }) });
  expect([answer.status, await answer.json()]).toEqual([500, { errorCode: 300 }]);
  expect(await stored()).toBeUndefined();
  open();
  expect((await answered).status).toBe(201);
  expect(await stored()).toBe('late');
});

test('a refused request never reaches etcd, and a removed rule no longer applies', async () => {
  const remove = proxy.intercept(() => ({ refuse: true }));
  await expect(put(proxy.url, 'x')).rejects.toThrow('socket hang up');
  expect(await stored()).toBeUndefined();
  remove();
  expect((await put(proxy.url, 'y')).statusCode).toBe(201);
});

test('a silenced request stays open and unanswered until its client disconnects', async () => {
  proxy.intercept(() => ({ silent: true }));
  const client = new AbortController();
  const arrived = proxy.next(isPut, 'arrived');
  const write = put(proxy.url, 'x', client.signal);
  await arrived;
  expect(proxy.openSockets).toBe(1);
  client.abort();
  await expect(write).rejects.toThrow('aborted');
  await openSockets(0);
  expect(await stored()).toBeUndefined();
});

test('the proxy streams the headers of a long poll first and its event later', async () => {
  const headers = proxy.next(isPoll, 'headers');
  const poll = await fetch(`${proxy.url}${key}?wait=true`);
  await headers;
  await put(etcd, 'x');
  expect(await poll.json()).toMatchObject({ action: 'set', node: { value: 'x' } });
});

test('etcd ends a long poll whose client disconnects from the proxy', async () => {
  const own = await startEtcd();
  const toOwn = await startProxy(own.url);
  onTestFinished(async () => {
    await toOwn.stop();
    await own.stop();
  });
  const polls = () => pollsAt(own.url);
  expect(await polls()).toBe(0);
  const client = new AbortController();
  const poll = await fetch(`${toOwn.url}${key}?wait=true`, { signal: client.signal });
  expect(poll.status).toBe(200);
  await until(polls, (count) => count === 1);
  client.abort();
  await until(polls, (count) => count === 0);
});

test('stop() closes open connections and does not forward held writes', async () => {
  let letGo = () => {};
  const hold = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  proxy.intercept((request) => (isPut(request) ? { hold } : undefined));
  const arrived = proxy.next(isPut, 'arrived');
  const write = expect(put(proxy.url, 'x')).rejects.toThrow('socket hang up');
  await arrived;
  await proxy.stop();
  await write;
  letGo();
  await hold;
  expect(await stored()).toBeUndefined();
  proxy = await startProxy(etcd);
});

// Not fetch: after an abort undici opens another, idle connection, which would count as open.
async function put(base: string, value: string, signal?: AbortSignal): Promise<IncomingMessage> {
  const request = http.request(`${base}${key}`, { method: 'PUT', agent: false, ...(signal && { signal }) });
  request.setHeader('content-type', 'application/x-www-form-urlencoded').end(`value=${value}`);
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  await text(answer);
  return answer;
}

async function stored(): Promise<string | undefined> {
  const answer = (await (await fetch(`${etcd}${key}?quorum=true`)).json()) as { node?: { value: string } };
  return answer.node?.value;
}

async function openSockets(count: number): Promise<void> {
  await until(
    () => proxy.openSockets,
    (open) => open === count,
  );
}

async function pollsAt(url: string): Promise<number> {
  return ((await (await fetch(`${url}/v2/stats/store`)).json()) as { watchers: number }).watchers;
}
