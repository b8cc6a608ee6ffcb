import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { EtcdConnectionFailed, EtcdValueError } from '../../src/errors.ts';
import type { V2Client } from '../../src/v2/client.ts';
import { connect, serve } from '../support/clients.ts';
import { rejection } from '../support/locks.ts';
import { refuse, silent, type TcpHandler } from '../support/tcp-server.ts';
import { until } from '../support/until.ts';
import { failed, file, got, rawAnswer } from '../support/v2-answers.ts';

const DIR = '/_locks/x';
const KEY = `${DIR}/00000000000000000004`;
const created = rawAnswer(201, { action: 'create', node: file(KEY) });
const listed = rawAnswer(200, { action: 'get', node: file(DIR, { value: undefined, dir: true, nodes: [file(KEY)] }) });

/** Returns a client whose member has answered before. Without that, the client does not pipeline. */
async function useMember(handler: TcpHandler) {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const etcd = await serve((socket, request) => {
    if (request.includes('/known')) return void socket.write(rawAnswer(200, got('/known')));
    requests.push(request);
    sockets.add(socket);
    return handler(socket, request);
  });
  const client = connect({ endpoints: etcd.url });
  await client.get('/known');
  return { client, etcd, requests, sockets };
}

/** Handles appends by one handler and listings by another. */
const on =
  (append: TcpHandler, listing: TcpHandler): TcpHandler =>
  (socket, request) =>
    (request.startsWith('POST') ? append : listing)(socket, request);

const write =
  (...answers: string[]): TcpHandler =>
  (socket) => {
    for (const raw of answers) socket.write(raw);
  };

describe('an append with a listing', () => {
  test('sends both on one connection without waiting for an answer', async () => {
    const { client, requests, sockets } = await useMember((socket, request) => {
      if (request.startsWith('GET')) socket.write(created + listed);
    });
    const { node, listing } = await client.createInOrder(DIR, 'u1', { listing: true });
    expect((await listing)?.node.nodes).toMatchObject([{ key: node.key }]);
    expect(requests.map((request) => request.split(' HTTP', 1)[0])).toEqual([
      'POST /v2/keys/_locks/x',
      'GET /v2/keys/_locks/x?recursive=true',
    ]);
    expect(sockets.size).toBe(1);
  });

  test('reuses the connection, also for other calls', async () => {
    const { client, requests, sockets } = await useMember((socket, request) => {
      if (request.startsWith('POST')) socket.write(created);
      else socket.write(request.startsWith('GET') ? listed : rawAnswer(200, { action: 'delete', node: file(KEY) }));
    });
    for (let i = 0; i < 3; i += 1) {
      await (await client.createInOrder(DIR, 'u1', { listing: true })).listing;
      await client.delete(KEY);
    }
    expect({ sockets: sockets.size, requests: requests.length }).toEqual({ sockets: 1, requests: 9 });
  });

  test('uses its own connection, so that no append waits for another', async () => {
    const { client, requests, sockets } = await useMember(() => {});
    const calls = Array.from({ length: 3 }, () => client.createInOrder(DIR, 'u1', { listing: true }));
    await until(
      () => requests.length,
      (count) => count === 6,
    );
    expect(sockets.size).toBe(3);
    for (const socket of sockets) socket.write(created + listed);
    expect(await Promise.all(calls)).toHaveLength(3);
  });

  test('requests no listing unless the option is set', async () => {
    const { client, requests } = await useMember(write(created));
    const { listing } = await client.createInOrder(DIR, 'u1');
    expect(await listing).toBeUndefined();
    expect(requests).toHaveLength(1);
  });

  test.each<[string, TcpHandler]>([
    ['is never answered', silent],
    ['is answered by an error', write(rawAnswer(500, failed(300)))],
    ['is answered by a page', write(rawAnswer(200, '<html>'))],
    ['is cut off', refuse],
  ])('succeeds without a listing if the listing %s', async (_, listing) => {
    const { client, requests } = await useMember(on(write(created), listing));
    const appended = await client.createInOrder(DIR, 'u1', { listing: true });
    expect(appended.node.key).toBe(KEY);
    expect(await appended.listing).toBeUndefined();
    // The caller has to repeat a lost listing.
    expect(requests).toHaveLength(2);
  });

  test.each<[string, TcpHandler, object]>([
    ['is refused', write(rawAnswer(400, failed(209))), { name: EtcdValueError.name }],
    ['is answered too late', silent, { name: EtcdConnectionFailed.name, outcomeUnknown: true }],
    ['is cut off', refuse, { name: EtcdConnectionFailed.name, outcomeUnknown: true }],
  ])(
    'fails in the same way as without a listing if the append %s, and leaves no open socket',
    async (_, append, error) => {
      const { client, etcd } = await useMember(on(append, silent));
      const call = client.createInOrder(DIR, 'u1', { listing: true, attemptTimeout: 0.3 });
      expect(await rejection(call)).toMatchObject(error);
      await until(
        () => etcd.openSockets,
        (count) => count === 0,
      );
    },
  );

  test.each<[string, (client: V2Client) => Promise<unknown>]>([
    ['has not answered yet', async () => {}],
    [
      'has stopped answering',
      (client) => rejection(client.get(DIR, { attemptTimeout: 0.1, signal: AbortSignal.timeout(500) })),
    ],
  ])('sends one request at a time if the cluster %s', async (_, before) => {
    const etcd = await serve(silent);
    const client = connect({ endpoints: etcd.url });
    await before(client);
    const asked = etcd.requests.length;
    const call = client.createInOrder(DIR, 'u1', { listing: true, attemptTimeout: 0.3 });
    expect(await rejection(call)).toBeInstanceOf(EtcdConnectionFailed);
    expect(etcd.requests.slice(asked).filter((request) => request.startsWith('GET'))).toEqual([]);
  });

  test('sends no more listings after two of them were not answered', async () => {
    const { client, requests } = await useMember(on(write(created), silent));
    for (let turn = 0; turn < 4; turn += 1) await (await client.createInOrder(DIR, 'u1', { listing: true })).listing;
    expect(requests.filter((request) => request.startsWith('GET'))).toHaveLength(2);
  });

  test('still sends a listing after appends that were slow or given up', async () => {
    const { client, requests } = await useMember(on(silent, silent));
    for (let turn = 1; turn <= 3; turn += 1) {
      const abort = new AbortController();
      const failed = rejection(client.createInOrder(DIR, 'u1', { listing: true, signal: abort.signal }));
      await until(
        () => requests.filter((request) => request.startsWith('GET')),
        ({ length }) => length === turn,
      );
      abort.abort(new Error('given up'));
      await failed;
    }
  });
});
