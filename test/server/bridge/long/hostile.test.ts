// Clients that are malformed, slow or huge, or that hang up. A bridge answers them or ends them, and leaves nothing at etcd.
import { expect, test } from 'vitest';
import { freshName, raw, useProxy } from '../../../support/locks.ts';
import { MALFORMED } from '../../../support/malformed.ts';
import { poll, RawConnection, request } from '../../../support/raw-connection.ts';
import { until } from '../../../support/until.ts';
import { useBridge } from '../use-bridge.ts';

const LEAVING: readonly (readonly [string, (client: RawConnection) => void])[] = [
  ['hangs up', (client) => client.hangUp()],
  ['resets its connection', (client) => client.reset()],
  ['closes its half', (client) => client.halfClose()],
];

async function setUp() {
  const proxy = await useProxy();
  const { url } = await useBridge({ endpoints: proxy.url, metrics: true });
  const dir = `/_locks/${freshName()}`;
  const watches = () => [...proxy.open].filter(({ path }) => path.endsWith('/watch')).length;
  const metric = async (name: string): Promise<number> =>
    Number(
      new RegExp(`^etcd_v2_lock_bridge_${name} (\\d+)`, 'm').exec(await (await fetch(`${url}/metrics`)).text())?.[1],
    );
  return {
    url,
    dir,
    watches,
    open: () => RawConnection.open(url),
    append: async () => (await raw('POST', dir, { value: freshName(), ttl: '60' }, url)).body.node.key,
    /** Expects that the bridge keeps nothing of earlier clients, leaves nothing of them at etcd, and serves the next one. */
    async expectUnharmed() {
      await until(
        async () => [watches(), await metric('open_polls')],
        ([atEtcd, here]) => atEtcd === 0 && here === 0,
      );
      await until(
        async () => (await raw('GET', dir, undefined, url)).body.node.nodes ?? [],
        ({ length }) => length === 0,
      );
      const { body } = await raw('POST', dir, { value: freshName(), ttl: '60' }, url);
      expect((await raw('DELETE', body.node.key, undefined, url)).status).toBe(200);
    },
  };
}

test.each(MALFORMED)('%s gets 400, and the bridge closes the connection', async (_, text) => {
  const { open, expectUnharmed } = await setUp();
  const client = await open();
  client.send(text);
  expect(await client.closed()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  await expectUnharmed();
});

test.each(LEAVING)('a client that %s in a long poll leaves no watch at etcd', async (_, leave) => {
  const { append, open, url, watches, expectUnharmed } = await setUp();
  const key = await append();
  const client = await open();
  client.send(poll(key));
  await client.begun(1);
  await until(watches, (count) => count === 1);
  leave(client);
  await until(watches, (count) => count === 0);
  await raw('DELETE', key, undefined, url);
  await expectUnharmed();
});

test('five hundred polls whose clients hang up leave no watch at etcd', async () => {
  const { append, open, url, watches, expectUnharmed } = await setUp();
  const key = await append();
  const clients = await Promise.all(Array.from({ length: 500 }, open));
  for (const [i, client] of clients.entries()) {
    client.send(poll(key));
    // All at once, they would have to wait for etcd so long on a busy machine that the bridge refuses some.
    if (i % 20 === 19) await until(watches, (count) => count === i + 1);
  }
  for (const [i, client] of clients.entries()) i % 2 === 0 ? client.hangUp() : client.reset();
  await until(watches, (count) => count === 0);
  await raw('DELETE', key, undefined, url);
  await expectUnharmed();
});

test('a client that sends a part of its append and hangs up creates no entry', async () => {
  const { dir, open, expectUnharmed } = await setUp();
  const client = await open();
  const append = request('POST', `/v2/keys${dir}`, { form: `value=${freshName()}&ttl=60` });
  client.send(append.slice(0, -10));
  await client.flushed();
  client.hangUp();
  await expectUnharmed();
});

test('an append that arrives byte by byte is answered, and others do not wait for it', async () => {
  const { dir, open, url, expectUnharmed } = await setUp();
  const client = await open();
  const append = request('POST', `/v2/keys${dir}`, { form: `value=${freshName()}&ttl=60` });
  for (const byte of append.slice(0, -1)) {
    client.send(byte);
    await client.flushed();
  }
  await expectUnharmed();
  client.send(append.slice(-1));
  const [answer] = await client.wholeAnswers(1);
  expect(answer?.status).toBe(201);
  await raw('DELETE', JSON.parse(answer?.body ?? '').node.key, undefined, url);
  client.hangUp();
  await expectUnharmed();
});

test('a form of more than 1 MiB is refused, and creates no entry', async () => {
  const { dir, open, expectUnharmed } = await setUp();
  const client = await open();
  client.send(request('POST', `/v2/keys${dir}`, { form: `value=${'x'.repeat(2 ** 20)}` }));
  const [answer] = await client.wholeAnswers(1);
  expect([answer?.status, JSON.parse(answer?.body ?? '')]).toMatchObject([400, { errorCode: 210 }]);
  client.hangUp();
  await expectUnharmed();
});

test('a value of more than 16 KiB is refused, and creates no entry', async () => {
  const { dir, url, expectUnharmed } = await setUp();
  const append = (length: number) => raw('POST', dir, { value: 'x'.repeat(length), ttl: '60' }, url);
  expect(await append(2 ** 14 + 1)).toMatchObject({
    status: 400,
    body: {
      errorCode: 107,
      cause: 'a value of 16385 bytes, more than the maximum of 16384: a bridge serves only locks',
    },
  });
  await expectUnharmed();
  const { body } = await append(2 ** 14);
  expect((await raw('DELETE', body.node.key, undefined, url)).status).toBe(200);
});
