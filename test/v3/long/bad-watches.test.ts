import type { Socket } from 'node:net';
import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../../src/client.ts';
import { EtcdConnectionFailed } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { startEtcd } from '../../support/etcd.ts';
import { entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName, rejection, useProxy } from '../../support/locks.ts';
import { httpAnswer, startTcpServer, type TcpServer } from '../../support/tcp-server.ts';
import { until } from '../../support/until.ts';

const STREAM = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const CREATED = chunk('{"result":{"header":{"revision":"2"},"created":true}}\n');
const CANCELED =
  '{"result":{"header":{"revision":"2"},"watch_id":"-1","created":true,"canceled":true,"cancel_reason":"no"}}';

/** A real etcd whose watches are answered by a script, and all other requests by itself. */
async function useWatches(answer: (socket: Socket) => void): Promise<TcpServer & { readonly watchedAt: number[] }> {
  const watchedAt: number[] = [];
  const server = await startTcpServer(async (socket, request) => {
    const [method = '', path = ''] = request.split(' ', 2);
    if (path === '/v3/watch') {
      watchedAt.push(performance.now());
      return answer(socket);
    }
    const body = method === 'GET' ? null : request.slice(request.indexOf('\r\n\r\n') + 4);
    const real = await fetch(inject('etcd') + path, { method, body });
    const text = await real.text();
    if (socket.writable) socket.write(httpAnswer(real.status, {}, text));
  });
  onTestFinished(() => server.stop());
  return Object.assign(server, { watchedAt });
}

function useLocks(endpoints = inject('etcd')): LockManager {
  const client = new EtcdClient({ api: 'v3', endpoints });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return new LockManager(client, { ttl: 6 });
}

test.each<[string, (socket: Socket) => void]>([
  ['sends garbage', (socket) => socket.write(STREAM + chunk('<html>{}} "watch" {'))],
  ['sends messages of wrong types', (socket) => socket.write(STREAM + chunk('{"result":{"events":7}}'))],
  ['sends a page', (socket) => socket.write(httpAnswer(200, {}, '<html><style>b { color: red }</style></html>'))],
  ['answers 404', (socket) => socket.write(httpAnswer(404, {}, '404 page not found\n'))],
  ['answers 503', (socket) => socket.write(httpAnswer(503, {}, '<html>later'))],
  ['refuses with 200 and leaves the stream open', (socket) => socket.write(STREAM + chunk(CANCELED))],
  ['ends the stream at once', (socket) => socket.write(`${STREAM}${CREATED}0\r\n\r\n`)],
  ['resets the connection', (socket) => socket.resetAndDestroy()],
  ['cuts a message off', (socket) => socket.end(`${STREAM}40\r\n{"result":{"eve`)],
  [
    'always says that the history is compacted',
    (socket) => socket.write(STREAM + CREATED + chunk('{"result":{"canceled":true,"compact_revision":"131"}}')),
  ],
  [
    'always says that the key is deleted',
    (socket) => socket.write(STREAM + CREATED + chunk('{"result":{"events":[{"type":"DELETE","kv":{"key":"YQ=="}}]}}')),
  ],
])(
  'a member that %s to each watch makes a waiter read again, at its pace, and never holds by that',
  async (_, answer) => {
    const name = freshName();
    const owner = await useLocks().acquire(name);
    const member = await useWatches(answer);
    let isHeld = false;
    const waiting = useLocks(member.url)
      .acquire(name)
      .then((held) => {
        isHeld = true;
        return held;
      });
    await until(
      () => member.watchedAt,
      ({ length }) => length >= 6,
    );
    // The first watch may show a change. Later ones are followed by pauses of at least 50, 100, 200 and 250 ms.
    const [first = 0, , , , , sixth = 0] = member.watchedAt;
    expect(sixth - first).toBeGreaterThan(580);
    expect(isHeld).toBe(false);
    await owner.release();
    const held = await waiting;
    expect(held.fencingToken).toBeGreaterThan(owner.fencingToken);
    expect(await held.release()).toBe(true);
  },
);

test('a waiter whose watch is silent reads the queue again within a third of its TTL', async () => {
  const name = freshName();
  const owner = await useLocks().acquire(name);
  const member = await useWatches((socket) => socket.write(STREAM + CREATED));
  const waiting = useLocks(member.url).acquire(name);
  await until(
    () => member.watchedAt,
    ({ length }) => length === 1,
  );
  await owner.release();
  const held = await waiting;
  expect(member.watchedAt.length).toBeLessThanOrEqual(2);
  expect(await held.release()).toBe(true);
});

test('a waiter behind a proxy that resets its watch gets the lock', async () => {
  const name = freshName();
  const owner = await useLocks().acquire(name);
  const proxy = await useProxy();
  let resets = 0;
  proxy.intercept(({ path }) => (path === '/v3/watch' && resets++ < 2 ? { refuse: true } : undefined));
  const waiting = useLocks(proxy.url).acquire(name);
  await until(
    () => resets,
    (count) => count >= 3,
  );
  await owner.release();
  expect(await (await waiting).release()).toBe(true);
});

test('a waiter continues when the revision that it watches from was compacted', async () => {
  // A server of its own: other tests watch old revisions of the shared one.
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const name = freshName();
  const owner = await useLocks(etcd.url).acquire(name);
  const proxy = await useProxy(etcd.url);
  let compacted = false;
  proxy.intercept(({ path }) => {
    if (path !== '/v3/watch' || compacted) return undefined;
    compacted = true;
    // Further writes, so that the revision of the watch lies before the compaction.
    const compact = async () => {
      const put = () => gateway('/kv/put', { key: 'eA==', value: 'eA==' }, etcd.url);
      for (let i = 0; i < 3; i += 1) await put();
      const { header } = (await put()) as unknown as { header: { revision: string } };
      await gateway('/kv/compaction', { revision: header.revision }, etcd.url);
    };
    return { hold: compact() };
  });
  // With a short TTL, a slow release would be a silence, and begin another watch.
  const waiting = useLocks(proxy.url).acquire(name, { ttl: 30 });
  const watches = () => proxy.requests.filter(({ path }) => path === '/v3/watch').length;
  await until(watches, (count) => count === 2);
  await owner.release();
  const held = await waiting;
  expect(watches()).toBe(2);
  expect(await held.release()).toBe(true);
  expect(await entriesBelow(`/_locks/${name}/`, etcd.url)).toEqual([]);
});

test.each<[string, number, (socket: Socket) => void]>([
  ['cut off', 12, (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{"header":{"clu')],
  ['cut off in a chunk', 12, (socket) => socket.end(`${STREAM}ff\r\n{"header":{`)],
  [
    'endless',
    // These tries last two, three and five seconds, and send two, two and three requests. The first two leases are revoked once a second.
    26,
    (socket) => {
      socket.write(STREAM);
      const more = () => {
        if (!socket.destroyed) socket.write(chunk(' '.repeat(1024)), () => setTimeout(more, 5));
      };
      more();
    },
  ],
])('an answer that is %s fails in time, like an outage', async (_, most, answer) => {
  const server = await startTcpServer((socket, request) => {
    if (request.startsWith('GET /version')) socket.write(httpAnswer(200, {}, '{"etcdserver":"3.4.23"}'));
    else answer(socket);
  });
  onTestFinished(() => server.stop());
  const error = await rejection(useLocks(server.url).acquire('x'));
  expect(error).toBeInstanceOf(EtcdConnectionFailed);
  expect(error).toHaveProperty('outcomeUnknown', true);
  // Three tries, and the search for a lease or key that they may have created.
  expect(server.requests.length).toBeLessThanOrEqual(most);
  expect(server.requests.filter((request) => request.includes('/lease/grant')).length).toBeLessThanOrEqual(7);
});
