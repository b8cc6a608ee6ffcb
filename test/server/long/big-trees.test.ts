import { expect, test } from 'vitest';
import { Store } from '../../../src/server/store/store.ts';
import { connect } from '../../support/clients.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { expectUnharmed, serveOpenly, waiting } from '../../support/open-server.ts';
import { get, RawConnection, request } from '../../support/raw-connection.ts';

/** So many parts that a listing, which repeats the beginning of the key for each of them, would have 144 MB. */
const DEEP = '/d'.repeat(12_000);

test('a key of 3,000 parts can be listed, watched and removed', async () => {
  const key = '/d'.repeat(3000);
  const etcd = await serveOpenly();
  const client = connect({ endpoints: etcd.url });
  const written = client.watch('/d', { recursive: true });
  await waiting(etcd, 1);
  etcd.store.set(key, 'v', {});
  expect(await written).toMatchObject({ action: 'set', node: { key } });
  for (const sorted of [true, false]) {
    let { node } = await client.get('/', { recursive: true, sorted });
    while (node.nodes[0]) node = node.nodes[0];
    expect(node).toMatchObject({ key, value: 'v' });
  }
  const events: unknown[] = [];
  etcd.store.watch({ key, recursive: false, since: etcd.store.index + 1, notify: (event) => events.push(event) });
  await client.delete('/d', { recursive: true });
  expect(events).toMatchObject([{ action: 'delete', node: { key: '/d' } }]);
  await client.close();
  await expectUnharmed(etcd);
});

test('a listing larger than any client accepts is refused, and its key can be removed', async () => {
  const etcd = await serveOpenly();
  etcd.store.set(DEEP, '1', {});
  const client = await RawConnection.open(etcd.url);
  client.send(get('/d?recursive=true') + request('DELETE', '/v2/keys/d?recursive=true') + get('/d'));
  const answers = await client.wholeAnswers(3);
  expect(answers.map(({ status }) => status)).toEqual([500, 200, 404]);
  expect(JSON.parse(answers[0]?.body ?? '')).toMatchObject({
    errorCode: 300,
    cause: 'the listing of /d has more than 64 MiB',
  });
  expect(etcd.store.index).toBe(5);
  client.hangUp();
  await expectUnharmed(etcd);
});

// This would take minutes if the cost of each part grew with the length of the key.
test('a key of very many parts can be written', () => {
  const store = new Store();
  const key = '/d'.repeat(200_000);
  expect(store.set(key, '1', {}).node.key).toBe(key);
  expect(store.delete('/d', { recursive: true }).action).toBe('delete');
});

test('a very deep directory expires', async () => {
  const clock = new ManualClock();
  const etcd = await serveOpenly(clock);
  etcd.store.set('/d', undefined, { dir: true, ttl: 1 });
  etcd.store.set(DEEP, '1', { ttl: 100 });
  clock.advance(1500);
  expect(() => etcd.store.get('/d', {})).toThrow('Key not found');
  expect(clock.outstanding).toBe(0);
});

test('a directory of very many keys is removed by one event', () => {
  const store = new Store();
  for (let i = 0; i < 200_000; i += 1) store.set(`/d/${i}`, '', {});
  store.delete('/d', { recursive: true });
  expect(store.index).toBe(200_004);
  expect(() => store.get('/d', {})).toThrow('Key not found');
});
