import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { expectUnharmed, type OpenServer, serveOpenly, waiting } from '../support/open-server.ts';
import { get, put, RawConnection } from '../support/raw-connection.ts';
import { until } from '../support/until.ts';

/** Opens a client with a stream. `count` is the number of streams on the server including this one. */
async function stream(etcd: OpenServer, target: string, count = 1): Promise<RawConnection> {
  const client = await RawConnection.open(etcd.url);
  client.send(get(`${target}wait=true&stream=true`));
  await waiting(etcd, count);
  return client;
}

/** Actions and keys of the events received so far. */
const seenBy = ({ text }: RawConnection): string[] =>
  [...text.matchAll(/"action":"(\w+)","node":\{"key":"([^"]+)"/g)].map(([, action, key]) => `${action} ${key}`);

test('a stream that is not read gets the buffered events and no later event, as from etcd', async () => {
  const etcd = await serveOpenly();
  const client = await stream(etcd, '/k?');
  client.socket.pause();
  // More than fits into the system's buffers.
  for (let i = 1; i <= 3000; i += 1) {
    etcd.store.set('/k', `${i}.`.padEnd(20_000, 'x'), {});
    await turn();
  }
  expect(etcd.store.watchers).toBe(0);
  client.socket.resume();
  const writer = await RawConnection.open(etcd.url);
  writer.send(put('/k', 'late.'));
  await writer.wholeAnswers(1);
  writer.hangUp();
  client.halfClose();
  await client.closed();
  const seen = [...client.text.matchAll(/"node":\{"key":"\/k","value":"(\w+)\./g)].map(([, value]) => value);
  expect(seen.length).toBeGreaterThan(100);
  expect(seen.length).toBeLessThan(2000);
  expect(seen).toEqual(seen.map((_, i) => `${i + 1}`));
  await expectUnharmed(etcd);
});

test('a stream gets at most a hundred events of one tick, and no later event', async () => {
  const clock = new ManualClock();
  const etcd = await serveOpenly(clock);
  for (let i = 0; i < 300; i += 1) etcd.store.set(`/k/${i}`, '1', { ttl: 1 });
  const [client, other] = [await stream(etcd, '/k?recursive=true&'), await stream(etcd, '/other?', 2)];
  clock.advance(1000);
  await waiting(etcd, 1);
  etcd.store.set('/k/late', '1', {});
  etcd.store.set('/other', '1', {});
  await until(
    () => seenBy(other),
    (seen) => seen.length > 0,
  );
  expect(seenBy(client)).toEqual(Array.from({ length: 100 }, (_, i) => `expire /k/${i}`));
  for (const each of [client, other]) each.hangUp();
  await expectUnharmed(etcd);
});

test('a stream that is read gets every event', async () => {
  const etcd = await serveOpenly();
  const client = await stream(etcd, '/k?');
  for (let i = 1; i <= 300; i += 1) {
    etcd.store.set('/k', 'x'.repeat(50_000), {});
    // All but the first event also contain the previous value.
    await until(
      () => client.socket.bytesRead,
      (bytes) => bytes >= i * 100_000 - 50_000,
      { every: 1 },
    );
  }
  client.halfClose();
  await client.closed();
  expect(client.answers[0]?.body.match(/"action"/g)).toHaveLength(300);
  await expectUnharmed(etcd);
});

test('a stream gets every event of a thousand writes sent at once', async () => {
  const etcd = await serveOpenly();
  const client = await stream(etcd, '/?recursive=true&');
  const writer = await RawConnection.open(etcd.url);
  const keys = Array.from({ length: 1000 }, (_, i) => `/k/${i}`);
  writer.send(keys.map((key) => put(key, '1')).join(''));
  await writer.wholeAnswers(1000);
  await until(
    () => seenBy(client).length,
    (count) => count >= 1000,
  );
  expect(seenBy(client)).toEqual(keys.map((key) => `set ${key}`));
  for (const each of [client, writer]) each.hangUp();
  await expectUnharmed(etcd);
});

test('a stream gets the expiry of the keys it watches in one tick, but not of hidden keys', async () => {
  const clock = new ManualClock();
  const etcd = await serveOpenly(clock);
  for (const key of ['/b', '/_h', '/ab', '/a', '/c']) etcd.store.set(key, undefined, { ttl: 1, dir: true });
  const root = await stream(etcd, '/?recursive=true&');
  const [below, beside] = [await stream(etcd, '/a/x?', 2), await stream(etcd, '/ab?', 3)];
  const hidden = await stream(etcd, '/_h/x?', 4);
  clock.advance(1000);
  etcd.store.set('/end', '1', {});
  for (const key of ['/a/x', '/ab', '/_h/x']) etcd.store.set(key, 'end', {});
  await until(
    () => [root, below, beside, hidden].map(seenBy),
    (seen) => seen.every((events) => events.some((event) => event.startsWith('set'))),
  );
  expect(seenBy(root)).toEqual([
    'expire /b',
    'expire /ab',
    'expire /a',
    'expire /c',
    'set /end',
    'set /a/x',
    'set /ab',
  ]);
  expect(seenBy(below)).toEqual(['set /a/x']);
  expect(seenBy(beside)).toEqual(['expire /ab', 'expire /ab', 'set /ab']);
  expect(seenBy(hidden)).toEqual(['set /_h/x']);
  for (const each of [root, below, beside, hidden]) each.hangUp();
  await expectUnharmed(etcd);
});
