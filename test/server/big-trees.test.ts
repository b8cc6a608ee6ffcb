import { expect, test } from 'vitest';
import { Store } from '../../src/server/store/store.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { expectUnharmed, serveOpenly } from '../support/open-server.ts';
import { get, RawConnection, request } from '../support/raw-connection.ts';

/** A recursive function over so many parts would overflow the stack. */
const DEEP = '/d'.repeat(12_000);

test('a key of very many parts cannot be listed, but can be removed', async () => {
  const etcd = await serveOpenly();
  etcd.store.set(DEEP, '1', {});
  const client = await RawConnection.open(etcd.url);
  client.send(get('/d?recursive=true') + request('DELETE', '/v2/keys/d?recursive=true') + get('/d'));
  const answers = await client.wholeAnswers(3);
  expect(answers.map(({ status }) => status)).toEqual([500, 200, 404]);
  expect(JSON.parse(answers[0]?.body ?? '')).toMatchObject({ errorCode: 300, message: 'Raft Internal Error' });
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
