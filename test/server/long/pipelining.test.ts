import { once } from 'node:events';
import type { Socket } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { nothingLeft, requests, serveOpenly, waiting } from '../../support/open-server.ts';
import { get, poll, put, RawConnection, request } from '../../support/raw-connection.ts';
import { until } from '../../support/until.ts';
import { FRONTS } from '../fronts.ts';

const post = (key: string, value: string) => request('POST', `/v2/keys${key}`, { form: `value=${value}` });

test('a read right after an append contains the new key', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  for (let i = 1; i <= 50; i += 1) {
    client.send(post('/q', `v${i}`) + get('/q?recursive=true&sorted=true'));
    const answers = await client.wholeAnswers(2 * i);
    const [appended, listed] = answers.slice(-2).map(({ body }) => JSON.parse(body));
    expect(listed.node.nodes.at(-1)).toEqual(appended.node);
  }
});

test('a read right after an append contains the new key, even if all requests arrive in small pieces', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const text = get('/') + post('/q', 'v') + get('/q');
  for (let at = 0; at < text.length; at += 7) {
    client.send(text.slice(at, at + 7));
    await client.flushed();
  }
  const answers = await client.wholeAnswers(3);
  expect(answers.map(({ status }) => status)).toEqual([200, 201, 200]);
  expect(JSON.parse(answers[2]?.body ?? '').node.nodes).toHaveLength(1);
});

test('answers of every kind are sent in the order of their requests', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(
    [
      post('/q', 'x'.repeat(200_000)),
      request('GET', '/nowhere'),
      request('PUT', '/v2/keys/k', { form: `value=${'x'.repeat(2 ** 20)}` }),
      request('PATCH', '/v2/keys/k'),
      request('GET', '/version'),
      get('/missing'),
      get('//q'),
      get('/q?wait=true&waitIndex=4&recursive=true'),
      request('DELETE', '/v2/keys/q?recursive=true'),
    ].join(''),
  );
  const answers = await client.wholeAnswers(9);
  expect(answers.map(({ status }) => status)).toEqual([201, 404, 400, 405, 200, 404, 301, 200, 200]);
});

test('a long poll delays the requests behind it, but no other client', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  const arrived = requests(etcd, 3);
  client.send(poll('/k') + put('/other', '1') + get('/other'));
  await arrived;
  await waiting(etcd, 1);
  const stranger = await RawConnection.open(etcd.url);
  stranger.send(get('/other') + put('/k', 'now'));
  const strangers = await stranger.wholeAnswers(2);
  expect(strangers.map(({ status }) => status)).toEqual([404, 201]);
  const answers = await client.wholeAnswers(3);
  expect(answers.map(({ body }) => JSON.parse(body).node)).toMatchObject([
    { key: '/k', value: 'now', modifiedIndex: 4 },
    { key: '/other', modifiedIndex: 5 },
    { key: '/other', modifiedIndex: 5 },
  ]);
});

test('long polls on one connection start one after the other', async () => {
  const etcd = await serveOpenly();
  const client = await RawConnection.open(etcd.url);
  client.send(poll('/k') + poll('/k') + poll('/k'));
  for (let i = 1; i <= 3; i += 1) {
    await client.begun(i);
    await waiting(etcd, 1);
    expect(client.answers).toHaveLength(i);
    etcd.store.set('/k', `${i}`, {});
  }
  const answers = await client.wholeAnswers(3);
  expect(answers.map(({ body }) => JSON.parse(body).node.value)).toEqual(['1', '2', '3']);
});

test('a connection may be idle without a time limit, before and after its first request', async () => {
  const etcd = await serveOpenly();
  const accepted = once(etcd.server, 'connection') as Promise<[Socket]>;
  const client = await RawConnection.open(etcd.url);
  const [socket] = await accepted;
  expect(socket.timeout ?? 0).toBe(0);
  client.send(get('/'));
  const [answer] = await client.wholeAnswers(1);
  expect(answer?.headers).not.toHaveProperty('keep-alive');
  expect(socket.timeout ?? 0).toBe(0);
  // Node checks these limits only every 30 seconds, so the test reads the settings. 0 means no limit.
  expect([etcd.server.headersTimeout, etcd.server.requestTimeout, etcd.server.timeout]).toEqual([0, 0, 0]);
  client.send(get('/'));
  await client.wholeAnswers(2);
  expect(await etcd.connections()).toBe(1);
});

describe.each(FRONTS)('on %s,', (_name, api) => {
  test('a thousand requests sent at once are answered in order', async () => {
    const etcd = await serveOpenly();
    const client = await RawConnection.open(etcd.url);
    const texts = Array.from({ length: 500 }, (_, i) => api.put(`/k${i}`, `${i}`) + api.get(`/k${i}`));
    client.send(texts.join(''));
    const answers = await client.wholeAnswers(1000);
    const values = answers.filter((_, i) => i % 2 === 1).map((answer) => api.valueIn(answer));
    expect(values).toEqual(Array.from({ length: 500 }, (_, i) => `${i}`));
  });

  test('a client that reads no answers gets no more of them than the system buffers, and the others once it reads', async () => {
    const etcd = await serveOpenly();
    api.set(etcd, '/long', 'x'.repeat(2 ** 20));
    const reads = api.name === 'v2' ? vi.spyOn(etcd.store, 'get') : vi.spyOn(etcd.v3, 'range');
    const client = await RawConnection.open(etcd.url);
    client.socket.pause();
    const arrived = requests(etcd, 50);
    client.send(api.get('/long').repeat(50));
    await arrived;
    const stranger = await RawConnection.open(etcd.url);
    for (let i = 1; i <= 50; i += 1) {
      stranger.send(api.get('/missing'));
      await stranger.wholeAnswers(i);
    }
    // The 50 of the stranger, and those that fill the buffers of both ends of the connection.
    expect(reads.mock.calls.length).toBeLessThan(75);
    client.socket.resume();
    // Looking for answers in so long a text again and again would take longer than to receive it.
    await until(
      () => client.text.length,
      (length) => length > 50 * 2 ** 20,
    );
    await client.wholeAnswers(50);
    expect(reads).toHaveBeenCalledTimes(100);
  });

  test('a client that sends faster than it reads gets all its answers', async () => {
    const etcd = await serveOpenly();
    api.set(etcd, '/k', 'x'.repeat(1000));
    const client = await RawConnection.open(etcd.url);
    client.send(api.get('/k'));
    await client.wholeAnswers(1);
    const all = client.text.length * 20_001;
    client.send(api.get('/k').repeat(20_000));
    await until(
      () => client.text.length,
      (length) => length === all || client.socket.destroyed,
      { timeout: 200_000 }, // 25 MB of answers, on a machine that may be busy
    );
    expect(client.text).toHaveLength(all);
  });

  test('a client that closes its half after sending still gets its answers', async () => {
    const etcd = await serveOpenly();
    api.set(etcd, '/long', 'x'.repeat(2 ** 23));
    for (const text of [api.get('/long'), api.put('/q', 'v'), api.put('/k', '1').repeat(20) + api.get('/long')]) {
      const client = await RawConnection.open(etcd.url);
      client.send(text);
      client.halfClose();
      await client.closed();
      expect(client.answers).toHaveLength(text.split(' HTTP/1.1').length - 1);
      expect(client.answers.every(({ status, whole }) => whole && (status === 200 || status === 201))).toBe(true);
    }
    await nothingLeft(etcd);
  });
});
