import { describe, expect, test } from 'vitest';
import * as errors from '../../src/errors.ts';
import { EtcdClient, LockManager } from '../../src/index.ts';
import type { V2Client } from '../../src/v2/client.ts';
import { connect, rejection, serve, serveSilence } from '../support/clients.ts';
import { answer } from '../support/tcp-server.ts';
import { until } from '../support/until.ts';
import { got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const good = answer(rawAnswer(200, got(KEY)));

const calls: [string, (client: V2Client) => Promise<unknown>][] = [
  ['get', (client) => client.get(KEY)],
  ['set', (client) => client.set(KEY, 'u1')],
  ['createInOrder', (client) => client.createInOrder('/_locks/x', 'u1')],
  ['renew', (client) => client.renew(KEY, { prevValue: 'u1', prevIndex: 4, ttl: 60 })],
  ['delete', (client) => client.delete(KEY)],
  ['watch', (client) => client.watch(KEY, { after: 7 })],
  ['version', (client) => client.version()],
  ['machines', (client) => client.machines()],
  ['members', (client) => client.members()],
];

test.each(calls)('a closed client refuses %s before any request', async (_, call) => {
  const etcd = await serve(good);
  const client = connect({ endpoints: etcd.url });
  await client.close();
  const error = await rejection(call(client), errors.EtcdClientClosed);
  expect(error).toMatchObject({ message: 'the client was closed', outcomeUnknown: false });
  expect([etcd.requests.length, etcd.openSockets]).toEqual([0, 0]);
});

test.each(calls)('closing ends an unanswered %s, whose outcome is unknown', async (_, call) => {
  const etcd = await serveSilence();
  const client = connect({ endpoints: etcd.url });
  const rejected = rejection(call(client), errors.EtcdClientClosed);
  await etcd.nextRequest();
  await client.close();
  expect((await rejected).outcomeUnknown).toBe(true);
  await closedSockets(etcd);
});

test('closing ends a call that was made just before', async () => {
  const etcd = await serve(good);
  const client = connect({ endpoints: etcd.url });
  const rejected = rejection(client.get(KEY), errors.EtcdClientClosed);
  await client.close();
  await rejected;
  await closedSockets(etcd);
});

test('closing does not retry the calls that it ends on the next member', async () => {
  const [a, b] = [await serveSilence(), await serve(good)];
  const client = connect({ endpoints: [a.url, b.url] });
  const rejected = rejection(client.get(KEY), errors.EtcdClientClosed);
  await a.nextRequest();
  await client.close();
  await rejected;
  expect([b.requests.length, b.openSockets]).toEqual([0, 0]);
});

test('a client can be closed several times', async () => {
  const etcd = await serve(good);
  const client = connect({ endpoints: etcd.url });
  await client.get(KEY);
  await Promise.all([client.close(), client.close({ timeout: 0 })]);
  await client.close();
  await closedSockets(etcd);
});

test('a client that was never used can be closed', async () => {
  await connect({}).close();
});

test('`await using` closes the client at the end of its block', async () => {
  const etcd = await serve(answer(rawAnswer(200, got('/_locks/x'))));
  {
    await using client = new EtcdClient({ endpoints: etcd.url });
    await new LockManager(client).query('x');
  }
  await closedSockets(etcd);
});

test.each([-1, Number.NaN, '5', null, -Number.MIN_VALUE])(
  'a timeout of %j is refused and closes nothing',
  async (timeout) => {
    const etcd = await serve(good);
    const client = connect({ endpoints: etcd.url });
    const error = await rejection(client.close({ timeout: timeout as number }), RangeError);
    expect(error.message).toContain(`timeout must be a number of seconds ≥ 0, got ${shown(timeout)}`);
    expect((await client.get(KEY)).node.key).toBe(KEY);
  },
);

describe('pending work', () => {
  test('delays closing until it is done', async () => {
    const client = connect({});
    const work = deferred();
    client.cleanups.add(KEY, work.promise);
    let closed = false;
    const closing = client.close().then(() => {
      closed = true;
    });
    const more = deferred();
    client.cleanups.add('/added/later', more.promise);
    work.resolve();
    await turns();
    expect(closed).toBe(false);
    more.resolve();
    await closing;
  });

  test('is abandoned after the timeout, and the error names each of its keys once', async () => {
    const etcd = await serve(good);
    const client = connect({ endpoints: etcd.url });
    await client.get(KEY);
    for (const key of ['/b', '/a', '/b']) client.cleanups.add(key, deferred().promise);
    client.cleanups.add('/done', Promise.resolve());
    const error = await rejection(client.close({ timeout: 0.1 }), errors.EtcdKeysLeft);
    expect(error.keys).toEqual(['/a', '/b']);
    expect(error.message).toBe('closed after 0.1 s; these keys may stay until their TTL has passed: /a, /b');
    await closedSockets(etcd);
    await rejection(client.get(KEY), errors.EtcdClientClosed);
  });

  test('may send requests while the client is being closed, but not afterwards', async () => {
    const etcd = await serve(good);
    const client = connect({ endpoints: etcd.url });
    const work = deferred();
    client.cleanups.add(KEY, work.promise);
    expect(client.cleanups.closing.aborted).toBe(false);
    const closing = client.close();
    expect(client.cleanups.closing.reason).toBeInstanceOf(errors.EtcdClientClosed);
    await rejection(client.get(KEY), errors.EtcdClientClosed);
    expect((await client.get(KEY, { background: true })).node.key).toBe(KEY);
    work.resolve();
    await closing;
    await rejection(client.get(KEY, { background: true }), errors.EtcdClientClosed);
    await closedSockets(etcd);
  });

  test('is ended by the timeout, even during an unanswered call', async () => {
    const etcd = await serveSilence();
    const client = connect({ endpoints: etcd.url });
    const removal = rejection(client.delete(KEY, { background: true }), errors.EtcdClientClosed);
    client.cleanups.add(
      KEY,
      removal.then(() => {}),
    );
    await etcd.nextRequest();
    const error = await rejection(client.close({ timeout: 0.1 }), errors.EtcdKeysLeft);
    expect(error.keys).toEqual([KEY]);
    expect((await removal).outcomeUnknown).toBe(true);
    await closedSockets(etcd);
  });
});

const closedSockets = (etcd: { readonly openSockets: number }) =>
  until(
    () => etcd.openSockets,
    (open) => open === 0,
    { timeout: 2000 },
  );

function deferred() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve: () => resolve() };
}

/** Resolves after everything that does not wait for I/O has run. */
async function turns(): Promise<void> {
  for (let i = 0; i < 10; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

const shown = (value: unknown) => (typeof value === 'string' ? JSON.stringify(value) : String(value));
