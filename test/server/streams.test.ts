import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { expectUnharmed, serveOpenly, waiting } from '../support/open-server.ts';
import { RawConnection, request } from '../support/raw-connection.ts';

test('a stream that is not read ends once it has fallen behind the history', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(request('GET', '/v2/keys/k?wait=true&stream=true'));
  await waiting(etcd, 1);
  client.socket.pause();
  // More than the machine's own buffers hold, by more events than the history does.
  for (let i = 1; i <= 3000; i += 1) {
    etcd.store.set('/k', `${i}.`.padEnd(20_000, 'x'), {});
    await turn();
  }
  client.socket.resume();
  const [answer] = await client.wholeAnswers(1);
  client.hangUp();
  const seen = [...(answer?.body ?? '').matchAll(/"node":\{"key":"\/k","value":"(\d+)\./g)].map(([, i]) => Number(i));
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.length).toBeLessThan(2000);
  expect(seen).toEqual(seen.map((_, i) => i + 1));
  await expectUnharmed(etcd);
});

test('a stream that is read is told of everything, however much it is', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(request('GET', '/v2/keys/k?wait=true&stream=true'));
  for (let i = 1; i <= 100; i += 1) {
    await waiting(etcd, 1);
    etcd.store.set('/k', `${i}.`.padEnd(50_000, 'x'), {});
  }
  await waiting(etcd, 1);
  client.halfClose();
  await client.closed();
  expect(client.answers[0]?.body.match(/"action"/g)).toHaveLength(100);
  await expectUnharmed(etcd);
});
