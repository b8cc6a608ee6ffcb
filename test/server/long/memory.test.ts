// The memory that clients use together. These tests count it as the server does.
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/base/time.ts';
import { Budget } from '../../../src/server/budget.ts';
import { Overloaded } from '../../../src/server/served-keys.ts';
import {
  expectUnharmed,
  nothingLeft,
  type OpenLimits,
  type OpenServer,
  serveOpenly,
  waiting,
} from '../../support/open-server.ts';
import { get, poll, put, RawConnection, request } from '../../support/raw-connection.ts';
import { until } from '../../support/until.ts';

const MIB = 2 ** 20;

/** More than fits into the buffers of both ends of a connection. */
const LONG = 16 * MIB;

async function serve(mebibytes: number, limits: OpenLimits = {}): Promise<OpenServer & { readonly budget: Budget }> {
  const budget = new Budget(mebibytes * MIB);
  return { ...(await serveOpenly(systemClock, { ...limits, budget })), budget };
}

/** Opens connections that send the text and read only the status of its answer. */
const unread = (etcd: OpenServer, count: number, text: string): Promise<RawConnection[]> =>
  Promise.all(
    Array.from({ length: count }, async () => {
      const client = await RawConnection.open(etcd.url);
      client.socket.once('data', () => client.socket.pause());
      return client.send(text);
    }),
  );

const statuses = (clients: readonly RawConnection[]) => clients.map(({ answers }) => answers[0]?.status);

/** Expects that nothing is counted any more, and that a long read succeeds. */
async function expectAllReturned({ budget, url }: { readonly budget: Budget; readonly url: string }): Promise<void> {
  await until(
    () => budget.used,
    (used) => used === 0,
  );
  const client = await RawConnection.open(url);
  client.send(get('/long'));
  await until(
    () => client.text.length,
    (length) => length > LONG,
  );
  client.hangUp();
  await until(
    () => budget.used,
    (used) => used === 0,
  );
}

test('unread answers of many connections use no more than the budget: further long reads get 503, short ones are answered', async () => {
  const etcd = await serve(160);
  etcd.store.set('/long', 'x'.repeat(LONG), {});
  const clients = await unread(etcd, 12, get('/long'));
  await until(
    () => statuses(clients),
    (all) => all.every((status) => status !== undefined),
  );
  expect(etcd.budget.used).toBeGreaterThan(5 * LONG);
  expect(etcd.budget.used).toBeLessThan(160 * MIB);
  expect(statuses(clients).filter((status) => status === 503).length).toBeGreaterThan(3);
  const refused = clients.find(({ answers }) => answers[0]?.status === 503);
  expect(refused?.answers[0]?.body).toMatch(/^503 Service Unavailable: limit of memory .* reached: retry later/);
  const stranger = await RawConnection.open(etcd.url);
  stranger.send(put('/k', 'short') + get('/k'));
  expect((await stranger.wholeAnswers(2)).map(({ status }) => status)).toEqual([201, 200]);
  for (const client of [...clients, stranger]) client.hangUp();
  await expectAllReturned(etcd);
  await expectUnharmed(etcd);
});

test('unread streams use no more than the budget, and other clients are served', async () => {
  const etcd = await serve(24);
  const clients = await unread(etcd, 20, request('GET', '/v2/keys/k?wait=true&stream=true'));
  await waiting(etcd, 20);
  const writer = await RawConnection.open(etcd.url);
  let most = 0;
  for (let i = 1; i <= 40; i += 1) {
    etcd.store.set('/k', 'x'.repeat(500_000), {});
    writer.send(put('/other', `${i}`));
    await writer.wholeAnswers(i);
    most = Math.max(most, etcd.budget.used);
  }
  expect(most).toBeGreaterThan(12 * MIB);
  expect(most).toBeLessThan(24 * MIB);
  for (const client of [...clients, writer]) client.hangUp();
  await until(
    () => etcd.budget.used,
    (used) => used === 0,
  );
  await expectUnharmed(etcd);
});

test('polls use the budget: one beyond it gets 503 after a second, and one is served when another ends', async () => {
  const etcd = await serve(1);
  const clients = await Promise.all(Array.from({ length: 30 }, () => RawConnection.open(etcd.url)));
  for (const client of clients) client.send(poll('/k'));
  const answers = await Promise.all(clients.map((client) => client.begun(1)));
  const open = answers.filter(([answer]) => answer?.status === 200);
  expect(open.length).toBeGreaterThan(10);
  expect(open.length).toBeLessThan(20);
  expect(answers.filter(([answer]) => answer?.status === 503)).toHaveLength(30 - open.length);
  for (const client of clients) client.hangUp();
  await waiting(etcd, 0);
  const next = await RawConnection.open(etcd.url);
  next.send(poll('/k'));
  expect(await next.begun(1)).toMatchObject([{ status: 200 }]);
  next.hangUp();
  await expectUnharmed(etcd);
  expect(etcd.budget.used).toBe(0);
});

test('forms behind a poll use at most a quarter of the budget, and another client can write', async () => {
  const etcd = await serve(8);
  const { budget } = etcd;
  // What is used falls at once if the connection is cut off, which depends on the pieces in which the forms arrive.
  let most = 0;
  vi.spyOn(budget, 'take').mockImplementation((...args) => {
    const taken = Budget.prototype.take.apply(budget, args);
    most = Math.max(most, budget.used);
    return taken;
  });
  const client = await RawConnection.open(etcd.url);
  client.send(poll('/k'));
  await client.begun(1);
  const form = put('/other', 'x'.repeat(MIB / 2));
  client.send(form.repeat(8));
  await until(
    () => most,
    (used) => used > MIB,
  );
  const stranger = await RawConnection.open(etcd.url);
  stranger.send(put('/other', 'x'.repeat(MIB / 8)));
  expect(await stranger.wholeAnswers(1)).toMatchObject([{ status: 201 }]);
  expect(most).toBeLessThan(2.5 * MIB);
  for (const each of [client, stranger]) each.hangUp();
  await expectUnharmed(etcd);
  expect(etcd.budget.used).toBe(0);
});

test('a write whose answer does not fit is not refused: its connection is cut off', async () => {
  const etcd = await serve(0.1);
  etcd.store.set('/k', 'x'.repeat(40_000), {});
  const reader = await RawConnection.open(etcd.url);
  reader.send(get('/k'));
  expect(await reader.wholeAnswers(1)).toMatchObject([{ status: 503 }]);
  const writer = await RawConnection.open(etcd.url);
  writer.send(put('/k', 'short'));
  expect(await writer.closed()).toBe('');
  expect(etcd.store.get('/k', {}).value).toBe('short');
  reader.hangUp();
  await expectUnharmed(etcd);
});

test('a client that takes nothing of an answer is cut off', async () => {
  const etcd = await serve(160, { patience: 200 });
  etcd.store.set('/long', 'x'.repeat(LONG), {});
  const [client] = await unread(etcd, 1, get('/long') + poll('/k'));
  await until(
    () => etcd.connections(),
    (count) => count === 0,
  );
  expect(client?.answers).toMatchObject([{ status: 200, whole: false }]);
  await expectUnharmed(etcd);
  expect(etcd.budget.used).toBe(0);
});

test('a client that reads slowly is not cut off, and neither is a poll that has nothing to take', async () => {
  const etcd = await serve(160, { patience: 8000 });
  etcd.store.set('/long', 'x'.repeat(LONG), {});
  const waiter = await RawConnection.open(etcd.url);
  waiter.send(poll('/k'));
  await waiter.begun(1);
  const client = await RawConnection.open(etcd.url);
  client.send(get('/long'));
  for (let i = 0; i < 30; i += 1) {
    client.socket.resume();
    await new Promise((resolve) => client.socket.once('data', resolve));
    client.socket.pause();
    await sleep(280);
  }
  client.socket.resume();
  await until(
    () => client.text.length,
    (length) => length > LONG,
  );
  expect((await client.wholeAnswers(1))[0]?.status).toBe(200);
  etcd.store.set('/k', 'now', {});
  expect((await waiter.wholeAnswers(1))[0]?.body).toContain('now');
  for (const each of [client, waiter]) each.hangUp();
  await expectUnharmed(etcd);
});

test('bytes held behind an offer to upgrade use the budget until they are answered, and their connection is cut off beyond it', async () => {
  const etcd = await serve(8);
  const client = await RawConnection.open(etcd.url);
  const offer = poll('/k') + request('GET', '/version', { headers: 'Connection: Upgrade\r\nUpgrade: websocket\r\n' });
  client.send(offer);
  await waiting(etcd, 1);
  client.send(put('/other', 'x'.repeat(MIB / 2)));
  await until(
    () => etcd.budget.used,
    (used) => used > MIB / 2,
  );
  etcd.store.set('/k', '1', {});
  expect((await client.wholeAnswers(3)).map(({ status }) => status)).toEqual([200, 200, 201]);
  await until(
    () => etcd.budget.used,
    (used) => used === 0,
  );
  client.send(offer);
  await waiting(etcd, 1);
  client.send('x'.repeat(4 * MIB));
  await client.closed();
  await expectUnharmed(etcd);
  expect(etcd.budget.used).toBe(0);
});

test('each small piece of a form uses the budget, not only its bytes', async () => {
  const etcd = await serve(1);
  const client = await RawConnection.open(etcd.url);
  client.socket.setNoDelay(true);
  const headers = 'Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n';
  client.send(`PUT /v2/keys/k HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n6\r\nvalue=\r\n`);
  let pieces = 0;
  for (; pieces < 5000 && etcd.budget.used < 100_000; pieces += 1) {
    client.send('1\r\nx\r\n');
    await client.flushed();
    await turn();
  }
  expect(etcd.budget.used).toBeGreaterThanOrEqual(100_000);
  client.send('0\r\n\r\n');
  expect(await client.wholeAnswers(1)).toMatchObject([{ status: 201 }]);
  expect(etcd.store.get('/k', {}).value).toBe('x'.repeat(pieces));
  client.hangUp();
  await expectUnharmed(etcd);
  expect(etcd.budget.used).toBe(0);
});

test.each([
  ['long headers', `X-Long: ${'x'.repeat(100_000)}\r\n`, 100_000],
  ['many headers', 'X: y\r\n'.repeat(1000), 64_000],
])('%s use the budget while their poll is open', async (_, headers, bytes) => {
  const etcd = await serve(1);
  const client = await RawConnection.open(etcd.url);
  client.send(poll('/k'));
  await waiting(etcd, 1);
  const before = etcd.budget.used;
  const other = await RawConnection.open(etcd.url);
  other.send(request('GET', '/v2/keys/k?wait=true', { headers }));
  await waiting(etcd, 2);
  expect(etcd.budget.used - 2 * before).toBeGreaterThan(bytes);
  for (const each of [client, other]) each.hangUp();
  await expectUnharmed(etcd);
  expect(etcd.budget.used).toBe(0);
});

test('a request whose headers do not fit gets 503', async () => {
  const etcd = await serve(1);
  const client = await RawConnection.open(etcd.url);
  client.send(request('GET', '/v2/keys/', { headers: `X-Long: ${'x'.repeat(MIB / 2)}\r\n` }) + get('/'));
  expect((await client.wholeAnswers(2)).map(({ status }) => status)).toEqual([503, 200]);
  client.hangUp();
  await expectUnharmed(etcd);
});

test('work that goes on after its client has reset its connection uses the budget until it ends', async () => {
  let begun = 0;
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const use = async (): Promise<never> => {
    begun += 1;
    await ended;
    throw new Overloaded('over');
  };
  const etcd = await serve(0.1, { keys: { clusterId: undefined, use } });
  const open = () => Promise.all(Array.from({ length: 30 }, () => RawConnection.open(etcd.url)));
  const refused = (some: readonly RawConnection[]) =>
    some.filter(({ answers, socket }) => answers[0]?.status === 503 || socket.closed).length;
  const removal = request('DELETE', '/v2/keys/k');
  const clients = await open();
  for (const client of clients) client.send(removal);
  await until(
    () => begun + refused(clients),
    (count) => count === 30,
  );
  const most = begun;
  expect(most).toBeGreaterThan(10);
  expect(most).toBeLessThan(25);
  for (const client of clients) client.reset();
  await nothingLeft(etcd);
  const next = await open();
  for (const client of next) client.send(removal);
  await until(
    () => begun - most + refused(next),
    (count) => count === 30,
  );
  expect(begun - most).toBeLessThan(3); // in the room of earlier refusals
  for (const client of next) client.reset();
  await nothingLeft(etcd);
  expect(etcd.budget.used).toBeGreaterThan(most * 4096);
  end();
  await until(
    () => etcd.budget.used,
    (used) => used === 0,
  );
  await expectUnharmed(etcd);
});
