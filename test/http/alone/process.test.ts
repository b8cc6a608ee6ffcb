// `getActiveResourcesInfo` counts exactly the handles, requests and timers that keep a process alive.
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { EtcdClientClosed } from '../../../src/errors.ts';
import { connect, rejection, serve, serveSilence } from '../../support/clients.ts';
import { answer } from '../../support/tcp-server.ts';
import { until } from '../../support/until.ts';
import { got, rawAnswer } from '../../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const HEAD = 'HTTP/1.1 200 OK\r\nx-etcd-index: 7\r\ntransfer-encoding: chunked\r\n\r\n';

/** Active sockets and timers. A connection to a server of this process also has a socket on the server's side. */
function active(): { sockets: number; timers: number } {
  const all = process.getActiveResourcesInfo();
  const count = (name: RegExp) => all.filter((resource) => name.test(resource)).length;
  return { sockets: count(/^TCP(Socket|Connect)Wrap$/), timers: count(/^Timeout$/) };
}

/** Waits for exactly these counts: closing a socket takes some time, and the test runner has timers of its own. */
const becomes = (wanted: ReturnType<typeof active>) =>
  until(active, (now) => now.sockets === wanted.sockets && now.timers === wanted.timers, { timeout: 3000 });

beforeEach(async () => {
  await becomes({ sockets: 0, timers: 0 });
});

test('a closed client leaves no sockets and timers, whatever calls were under way', async () => {
  const etcd = await serveSilence(HEAD);
  const client = connect({ endpoints: etcd.url });
  const calls = [
    client.get(KEY),
    client.watch(KEY, { after: 7 }),
    client.watch(KEY, { after: 7, timeout: 1e9 }),
    client.delete(KEY, { background: true }),
  ].map((call) => rejection(call, EtcdClientClosed));
  for (const _ of calls) await etcd.nextRequest();
  expect(active().sockets).toBeGreaterThan(calls.length);
  await client.close();
  await Promise.all(calls);
  await becomes({ sockets: 0, timers: 0 });
});

test('a call under way keeps the process alive', async () => {
  const etcd = await serveSilence();
  const client = connect({ endpoints: etcd.url });
  const call = client.get(KEY).catch(() => {});
  await etcd.nextRequest();
  await becomes({ sockets: 2, timers: 1 });
  await client.close();
  await call;
});

test('background work does not keep the process alive', async () => {
  const etcd = await serveSilence();
  const client = connect({ endpoints: etcd.url });
  const call = client.delete(KEY, { background: true }).catch(() => {});
  await etcd.nextRequest();
  await becomes({ sockets: 1, timers: 0 });
  await client.close();
  await call;
});

test('idle connections do not keep the process alive, with or without background work before', async () => {
  const etcd = await serve(answer(rawAnswer(200, got(KEY))));
  const client = connect({ endpoints: etcd.url });
  await client.get(KEY);
  await client.get(KEY, { background: true });
  expect(etcd.openSockets).toBe(2);
  await becomes({ sockets: 2, timers: 0 });
});

test('aborted and timed-out calls do not keep the process alive', async () => {
  const etcd = await serveSilence(HEAD);
  const client = connect({ endpoints: etcd.url });
  await client.watch(KEY, { after: 7, timeout: 0.1 });
  const caller = new AbortController();
  const watched = client.watch(KEY, { after: 7, signal: caller.signal }).catch(() => {});
  await etcd.nextRequest();
  await etcd.nextRequest();
  caller.abort();
  await watched;
  await until(
    () => active().sockets - etcd.openSockets,
    (ours) => ours === 0,
    { timeout: 3000 },
  );
  await becomes({ sockets: etcd.openSockets, timers: 0 });
});

test('many calls at a time cause no memory-leak warning', async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on('warning', note);
  onTestFinished(() => {
    process.off('warning', note);
  });
  const etcd = await serveSilence();
  const client = connect({ endpoints: etcd.url });
  const calls = Array.from({ length: 40 }, () => rejection(client.get(KEY), EtcdClientClosed));
  for (const _ of calls) await etcd.nextRequest();
  await client.close();
  await Promise.all(calls);
  expect(warnings).toEqual([]);
});

test('a background wait keeps the process alive only while it connects', async () => {
  const etcd = await serveSilence(HEAD);
  const client = connect({ endpoints: etcd.url });
  const watched = rejection(client.watch(KEY, { after: 7, background: true }), EtcdClientClosed);
  await etcd.nextRequest();
  await becomes({ sockets: 1, timers: 0 });
  await client.close();
  await watched;
});
