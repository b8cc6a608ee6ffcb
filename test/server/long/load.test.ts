// Many requests at the same time. These tests count; bench/embedded.mjs measures the time.
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { expectUnharmed, type OpenServer, serveOpenly, waiting } from '../../support/open-server.ts';
import { get, poll, put, RawConnection } from '../../support/raw-connection.ts';
import { runScript } from '../../support/script.ts';
import { until } from '../../support/until.ts';
import { FRONTS, type FrontApi, V2 } from '../fronts.ts';

const MANY = 1000;

/** Opens clients, each of which waits for a change of its key. */
async function waiters(etcd: OpenServer, api: FrontApi, keyOf: (i: number) => string): Promise<RawConnection[]> {
  const clients = await Promise.all(Array.from({ length: MANY }, () => RawConnection.open(etcd.url)));
  for (const [i, client] of clients.entries()) client.send(api.wait(keyOf(i)));
  await waiting(etcd, MANY);
  expect(await etcd.connections()).toBe(MANY);
  return clients;
}

const leaveAll = (clients: readonly RawConnection[]): void => {
  for (const [i, client] of clients.entries()) i % 2 === 0 ? client.hangUp() : client.reset();
};

describe.each(FRONTS)('on %s,', (_name, api) => {
  test('a thousand clients that hang up in their waits leave nothing behind, twice in a row', async () => {
    const etcd = await serveOpenly();
    for (let round = 0; round < 2; round += 1) {
      leaveAll(await waiters(etcd, api, (i) => `/q/${i % 10}`));
      await expectUnharmed(etcd);
    }
  });

  test('a thousand waits on one key all get the same event', async () => {
    const etcd = await serveOpenly();
    const clients = await waiters(etcd, api, () => '/k');
    api.set(etcd, '/other', 'no');
    api.set(etcd, '/k', 'yes');
    await until(
      () => clients.filter(({ text }) => api.hasEvent(text, 'yes')).length,
      (count) => count === MANY,
    );
    for (const { text } of clients) expect(api.hasEvent(text, 'no')).toBe(false);
    leaveAll(clients);
    await expectUnharmed(etcd);
  });

  test('a thousand waits on different keys each get the event of their key', async () => {
    const etcd = await serveOpenly();
    const clients = await waiters(etcd, api, (i) => `/q/${i}`);
    const writer = await RawConnection.open(etcd.url);
    for (let i = 0; i < MANY; i += 1) writer.send(api.put(`/q/${i}`, `v${i}`));
    await until(
      () => clients.filter(({ text }, i) => api.hasEvent(text, `v${i}`)).length,
      (count) => count === MANY,
    );
    leaveAll([...clients, writer]);
    await expectUnharmed(etcd);
  });
});

test('a thousand long polls on one key all get the same event', async () => {
  const etcd = await serveOpenly();
  const clients = await waiters(etcd, V2, () => '/k');
  etcd.store.set('/other', 'no', {});
  etcd.store.set('/k', 'yes', {});
  expect(etcd.store.watchers).toBe(0);
  const answers = await Promise.all(clients.map((client) => client.wholeAnswers(1)));
  expect(new Set(answers.map(([answer]) => answer?.body)).size).toBe(1);
  expect(JSON.parse(answers[0]?.[0]?.body ?? '')).toMatchObject({ action: 'set', node: { key: '/k', value: 'yes' } });
  leaveAll(clients);
  await expectUnharmed(etcd);
});

test('the history keeps the last thousand of ten thousand writes while another client polls', async () => {
  const etcd = await serveOpenly();
  const waiter = await RawConnection.open(etcd.url);
  waiter.send(poll('/elsewhere'));
  await waiting(etcd, 1);
  const writers = await Promise.all(Array.from({ length: 10 }, () => RawConnection.open(etcd.url)));
  for (const [i, writer] of writers.entries()) writer.send(put(`/k${i}`, 'v').repeat(1000));
  await Promise.all(writers.map((writer) => writer.wholeAnswers(1000)));
  expect(etcd.store.index).toBe(10_003);
  const reader = await RawConnection.open(etcd.url);
  for (const since of [9004, 9003, 4]) reader.send(get(`/?wait=true&recursive=true&waitIndex=${since}`));
  const [oldest, older, first] = (await reader.wholeAnswers(3)).map(({ body }) => JSON.parse(body));
  expect(oldest).toMatchObject({ action: 'set', node: { modifiedIndex: 9004 } });
  expect(older).toMatchObject({ errorCode: 401, cause: 'the requested history has been cleared [9004/9003]' });
  expect(first).toMatchObject({ errorCode: 401, cause: 'the requested history has been cleared [9004/4]' });
  expect(etcd.store.watchers).toBe(1);
  leaveAll([waiter, reader, ...writers]);
  await expectUnharmed(etcd);
});

test('clients that poll again after each event miss no event of their keys', async () => {
  const etcd = await serveOpenly();
  const clients = await Promise.all(Array.from({ length: 50 }, () => RawConnection.open(etcd.url)));
  const seen = clients.map(async (client, i) => {
    const values: string[] = [];
    for (let since = 4; values.length < 10; ) {
      client.send(get(`/k${i}?wait=true&waitIndex=${since}`));
      const answer = (await client.wholeAnswers(values.length + 1)).at(-1);
      const { node } = JSON.parse(answer?.body ?? '');
      values.push(node.value);
      since = node.modifiedIndex + 1;
    }
    return values;
  });
  for (let value = 0; value < 10; value += 1) {
    for (let i = 0; i < 50; i += 1) etcd.store.set(`/k${i}`, `${value}`, {});
    await turn();
  }
  const expected = Array.from({ length: 10 }, (_, value) => `${value}`);
  expect(await Promise.all(seen)).toEqual(clients.map(() => expected));
  leaveAll(clients);
  await expectUnharmed(etcd);
});

test('the server needs no more memory to repeat the same work', async () => {
  const { stdout, stderr, code } = await runScript(`
    import { setFlagsFromString } from 'node:v8';
    import { runInNewContext } from 'node:vm';
    import { V2Client } from './dist/v2/client.js';
    import { EmbeddedEtcd } from 'etcd-v2-lock/server';
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc');
    const etcd = await EmbeddedEtcd.start();

    async function round() {
      // Only a server that hangs answers so late, however busy the machine.
      const client = new V2Client({ endpoints: etcd.url, readTimeout: 120 });
      const leaving = Array.from({ length: 200 }, () => new AbortController());
      const watches = leaving.map(({ signal }, i) =>
        client.watch(i % 2 === 0 ? '/never' : '/end', { signal, timeout: 86_400 }).catch(() => {}),
      );
      let next = 0;
      const write = async () => {
        for (; next < 3000; next += 1)
          await client.set('/k/' + (next % 100), String(next).padEnd(4000), { ttl: 1000 });
      };
      await Promise.all(Array.from({ length: 32 }, write));
      await client.set('/end', 'now');
      for (const [i, caller] of leaving.entries()) if (i % 2 === 0) caller.abort();
      await Promise.all(watches);
      await client.close();
    }

    async function heap() {
      for (let i = 0; i < 3; i += 1) {
        gc();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return process.memoryUsage().heapUsed;
    }

    const heaps = [await heap()];
    for (let i = 0; i < 3; i += 1) {
      await round();
      heaps.push(await heap());
    }
    await etcd.stop();
    console.log(JSON.stringify(heaps));
  `);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const [before, first, second, third] = JSON.parse(stdout) as [number, number, number, number];
  // The first round fills the history with a thousand events of 8 kB. A leak would add as much in each further round.
  expect(first - before).toBeGreaterThan(4_000_000);
  expect(second - first).toBeLessThan((first - before) / 4);
  expect(third - second).toBeLessThan((first - before) / 4);
}, 600_000);
