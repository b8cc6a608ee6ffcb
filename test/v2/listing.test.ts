import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { EtcdConnectionFailed, EtcdValueError } from '../../src/errors.ts';
import { connect, serve } from '../support/clients.ts';
import { rejection } from '../support/locks.ts';
import { refuse, silent, type TcpHandler } from '../support/tcp-server.ts';
import { until } from '../support/until.ts';
import { failed, file, rawAnswer } from '../support/v2-answers.ts';

const DIR = '/_locks/x';
const KEY = `${DIR}/00000000000000000004`;
const created = rawAnswer(201, { action: 'create', node: file(KEY) });
const listed = rawAnswer(200, { action: 'get', node: file(DIR, { value: undefined, dir: true, nodes: [file(KEY)] }) });

/** Handles appends and listings each in their way. */
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
  test('sends both on one connection before either is answered', async () => {
    const sockets = new Set<Socket>();
    const etcd = await serve((socket, request) => {
      sockets.add(socket);
      if (request.startsWith('GET')) socket.write(created + listed);
    });
    const client = connect({ endpoints: etcd.url });
    const { node, listing } = await client.createInOrder(DIR, 'u1', { listing: true });
    expect((await listing)?.node.nodes).toMatchObject([{ key: node.key }]);
    expect(etcd.requests.map((request) => request.split(' HTTP', 1)[0])).toEqual([
      'POST /v2/keys/_locks/x',
      'GET /v2/keys/_locks/x?recursive=true',
    ]);
    expect(sockets.size).toBe(1);
  });

  test('uses that connection again, for other calls too', async () => {
    const sockets = new Set<Socket>();
    const etcd = await serve((socket, request) => {
      sockets.add(socket);
      if (request.startsWith('POST')) socket.write(created);
      else socket.write(request.startsWith('GET') ? listed : rawAnswer(200, { action: 'delete', node: file(KEY) }));
    });
    const client = connect({ endpoints: etcd.url });
    for (let i = 0; i < 3; i += 1) {
      await (await client.createInOrder(DIR, 'u1', { listing: true })).listing;
      await client.delete(KEY);
    }
    expect({ sockets: sockets.size, requests: etcd.requests.length }).toEqual({ sockets: 1, requests: 9 });
  });

  test('uses a connection for each of those at a time, so that none waits for another', async () => {
    const sockets = new Set<Socket>();
    const etcd = await serve((socket) => void sockets.add(socket));
    const client = connect({ endpoints: etcd.url });
    const calls = Array.from({ length: 3 }, () => client.createInOrder(DIR, 'u1', { listing: true }));
    await until(
      () => etcd.requests.length,
      (count) => count === 6,
    );
    expect(sockets.size).toBe(3);
    for (const socket of sockets) socket.write(created + listed);
    expect(await Promise.all(calls)).toHaveLength(3);
  });

  test('asks for none where it is not wanted', async () => {
    const etcd = await serve(write(created));
    const { listing } = await connect({ endpoints: etcd.url }).createInOrder(DIR, 'u1');
    expect(await listing).toBeUndefined();
    expect(etcd.requests).toHaveLength(1);
  });

  test.each<[string, TcpHandler]>([
    ['is never answered', silent],
    ['is answered by an error', write(rawAnswer(500, failed(300)))],
    ['is answered by a page', write(rawAnswer(200, '<html>'))],
    ['is cut off', refuse],
  ])('is done, without a listing, where that %s', async (_, listing) => {
    const etcd = await serve(on(write(created), listing));
    const appended = await connect({ endpoints: etcd.url }).createInOrder(DIR, 'u1', { listing: true });
    expect(appended.node.key).toBe(KEY);
    expect(await appended.listing).toBeUndefined();
    // Not one that was lost is asked for again here.
    expect(etcd.requests).toHaveLength(2);
  });

  test.each<[string, TcpHandler, object]>([
    ['is refused', write(rawAnswer(400, failed(209))), { name: EtcdValueError.name }],
    ['is answered too late', silent, { name: EtcdConnectionFailed.name, outcomeUnknown: true }],
    ['is cut off', refuse, { name: EtcdConnectionFailed.name, outcomeUnknown: true }],
  ])('fails as it would alone where it %s, and leaves nothing open', async (_, append, error) => {
    const etcd = await serve(on(append, silent));
    const client = connect({ endpoints: etcd.url });
    const call = client.createInOrder(DIR, 'u1', { listing: true, attemptTimeout: 0.3 });
    expect(await rejection(call)).toMatchObject(error);
    await until(
      () => etcd.openSockets,
      (count) => count === 0,
    );
  });

  test('goes to the next member where the first cannot be reached', async () => {
    const etcd = await serve(write(created, listed));
    const client = connect({ endpoints: ['http://127.0.0.1:1', etcd.url] });
    expect((await client.createInOrder(DIR, 'u1', { listing: true })).node.key).toBe(KEY);
  });

  test('is one request where no member answers', async () => {
    const etcd = await serve(silent);
    const client = connect({ endpoints: etcd.url });
    await rejection(client.get(DIR, { attemptTimeout: 0.1, signal: AbortSignal.timeout(500) }));
    const before = etcd.requests.length;
    const call = client.createInOrder(DIR, 'u1', { listing: true, attemptTimeout: 0.2 });
    expect(await rejection(call)).toBeInstanceOf(EtcdConnectionFailed);
    expect(etcd.requests.slice(before).filter((request) => request.startsWith('GET'))).toEqual([]);
  });
});
