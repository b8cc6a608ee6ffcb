// The memory that clients use together. These tests count it as the server does.
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
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
import { FRONTS, type FrontApi } from '../fronts.ts';

const MIB = 2 ** 20;

/** Milliseconds: longer than a test takes on a busy machine. */
const PATIENCE = 240_000;

/** More than fits into the buffers of both ends of a connection. */
const LONG = 16 * MIB;

interface Served extends OpenServer {
  readonly budget: Budget;
}

async function serve(mebibytes: number, limits: OpenLimits = {}): Promise<Served> {
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
async function expectAllReturned({ budget, url }: Served, api: FrontApi): Promise<void> {
  await until(
    () => budget.used,
    (used) => used === 0,
  );
  const client = await RawConnection.open(url);
  client.send(api.get('/long'));
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

describe.each(FRONTS)('on %s,', (_name, api) => {
  test('unread answers of many connections use no more than the budget: further long reads get 503, short ones are answered', async () => {
    const etcd = await serve(160, { patience: PATIENCE });
    api.set(etcd, '/long', 'x'.repeat(LONG));
    const clients = await unread(etcd, 12, api.get('/long'));
    await until(
      () => statuses(clients),
      (all) => all.every((status) => status !== undefined),
    );
    expect(etcd.budget.used).toBeGreaterThan(5 * LONG);
    expect(etcd.budget.used).toBeLessThan(160 * MIB);
    expect(statuses(clients).filter((status) => status === 503).length).toBeGreaterThan(3);
    const refused = clients.find(({ answers }) => answers[0]?.status === 503);
    expect(refused?.answers[0]?.body).toMatch(api.overloaded);
    const stranger = await RawConnection.open(etcd.url);
    stranger.send(api.put('/k', 'short') + api.get('/k'));
    expect((await stranger.wholeAnswers(2)).map(({ status }) => status)).toEqual([api.created, 200]);
    for (const client of [...clients, stranger]) client.hangUp();
    await expectAllReturned(etcd, api);
    await expectUnharmed(etcd);
  });

  test('unread streams use no more than the budget, and other clients are served', async () => {
    const etcd = await serve(24, { patience: PATIENCE });
    const clients = await unread(etcd, 20, api.stream('/k'));
    await waiting(etcd, 20);
    const writer = await RawConnection.open(etcd.url);
    let most = 0;
    for (let i = 1; i <= 40; i += 1) {
      api.set(etcd, '/k', 'x'.repeat(500_000));
      writer.send(api.put('/other', `${i}`));
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

  test('waits use the budget: one beyond it gets 503 after a second, and one is served when another ends', async () => {
    const etcd = await serve(1);
    const clients = await Promise.all(Array.from({ length: 30 }, () => RawConnection.open(etcd.url)));
    for (const client of clients) client.send(api.wait('/k'));
    const answers = await Promise.all(clients.map((client) => client.begun(1)));
    const open = answers.filter(([answer]) => answer?.status === 200);
    expect(open.length).toBeGreaterThan(10);
    expect(open.length).toBeLessThan(20);
    expect(answers.filter(([answer]) => answer?.status === 503)).toHaveLength(30 - open.length);
    for (const client of clients) client.hangUp();
    await waiting(etcd, 0);
    const next = await RawConnection.open(etcd.url);
    next.send(api.wait('/k'));
    expect(await next.begun(1)).toMatchObject([{ status: 200 }]);
    next.hangUp();
    await expectUnharmed(etcd);
    expect(etcd.budget.used).toBe(0);
  });

  test('bodies behind a wait use at most a quarter of the budget, and another client can write', async () => {
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
    client.send(api.wait('/k'));
    await client.begun(1);
    const write = api.put('/other', 'x'.repeat(MIB / 2));
    client.send(write.repeat(8));
    await until(
      () => most,
      (used) => used > MIB,
    );
    const stranger = await RawConnection.open(etcd.url);
    stranger.send(api.put('/other', 'x'.repeat(MIB / 8)));
    expect(await stranger.wholeAnswers(1)).toMatchObject([{ status: api.created }]);
    expect(most).toBeLessThan(2.5 * MIB);
    for (const each of [client, stranger]) each.hangUp();
    await expectUnharmed(etcd);
    expect(etcd.budget.used).toBe(0);
  });

  test('a write whose answer does not fit is not refused: its connection is cut off', async () => {
    const etcd = await serve(0.1);
    api.set(etcd, '/k', 'x'.repeat(40_000));
    const reader = await RawConnection.open(etcd.url);
    reader.send(api.get('/k'));
    expect(await reader.wholeAnswers(1)).toMatchObject([{ status: 503 }]);
    const writer = await RawConnection.open(etcd.url);
    writer.send(api.replace('/k', 'short'));
    expect(await writer.closed()).toBe('');
    expect(api.valueOf(etcd, '/k')).toBe('short');
    reader.hangUp();
    await expectUnharmed(etcd);
  });

  test('a client that takes nothing of an answer is cut off', async () => {
    const etcd = await serve(160, { patience: 200 });
    api.set(etcd, '/long', 'x'.repeat(LONG));
    const [client] = await unread(etcd, 1, api.get('/long') + api.wait('/k'));
    await until(
      () => etcd.connections(),
      (count) => count === 0,
    );
    expect(client?.answers).toMatchObject([{ status: 200, whole: false }]);
    await expectUnharmed(etcd);
    expect(etcd.budget.used).toBe(0);
  });

  test('each small piece of a body uses the budget, not only its bytes', async () => {
    const etcd = await serve(1);
    const client = await RawConnection.open(etcd.url);
    client.socket.setNoDelay(true);
    client.send(`${api.head}Transfer-Encoding: chunked\r\n\r\n${api.body.length.toString(16)}\r\n${api.body}\r\n`);
    let pieces = 0;
    for (; pieces < 5000 && etcd.budget.used < 100_000; pieces += 1) {
      client.send('1\r\n \r\n');
      await client.flushed();
      await turn();
    }
    expect(etcd.budget.used).toBeGreaterThanOrEqual(100_000);
    client.send('0\r\n\r\n');
    expect(await client.wholeAnswers(1)).toMatchObject([{ status: api.created }]);
    expect(api.valueOf(etcd, '/k')?.trimEnd()).toBe('1');
    client.hangUp();
    await expectUnharmed(etcd);
    expect(etcd.budget.used).toBe(0);
  });

  test.each([
    ['long headers', `X-Long: ${'x'.repeat(100_000)}\r\n`, 100_000],
    ['many headers', 'X: y\r\n'.repeat(1000), 64_000],
  ])('%s use the budget while their request waits', async (_, headers, bytes) => {
    const etcd = await serve(1);
    const client = await RawConnection.open(etcd.url);
    client.send(api.wait('/k'));
    await waiting(etcd, 1);
    const before = etcd.budget.used;
    const other = await RawConnection.open(etcd.url);
    other.send(api.wait('/k', headers));
    await waiting(etcd, 2);
    expect(etcd.budget.used - 2 * before).toBeGreaterThan(bytes);
    for (const each of [client, other]) each.hangUp();
    await expectUnharmed(etcd);
    expect(etcd.budget.used).toBe(0);
  });

  test('a request whose headers do not fit gets 503', async () => {
    const etcd = await serve(1);
    const client = await RawConnection.open(etcd.url);
    client.send(api.get('/none', `X-Long: ${'x'.repeat(MIB / 2)}\r\n`) + api.get('/none'));
    expect((await client.wholeAnswers(2)).map(({ status }) => status)).toEqual([503, api.missing]);
    client.hangUp();
    await expectUnharmed(etcd);
  });
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
