import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import * as errors from '../../src/errors.ts';
import { RateLimit } from '../../src/http/failover/rate-limit.ts';
import type { V2Client } from '../../src/v2/client.ts';
import { connect, rejection, serve } from '../support/clients.ts';
import type { TcpHandler } from '../support/tcp-server.ts';
import { ANSWER_HEADERS, failed, file, got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const known = rawAnswer(200, got('/known'));
const done = rawAnswer(200, { action: 'done', node: file(KEY) });

/**
 * A member that answers one request on each connection. It closes the connection when a second request comes.
 */
async function serveOnce(answer = done): Promise<{ url: string; lost: string[]; answered: string[] }> {
  const used = new WeakSet<Socket>();
  const lost: string[] = [];
  const answered: string[] = [];
  const handler: TcpHandler = (socket, request) => {
    const [line = ''] = request.split(' HTTP', 1);
    if (used.has(socket)) {
      lost.push(line);
      socket.destroy();
      return;
    }
    used.add(socket);
    answered.push(line);
    socket.write(line.endsWith('/known') ? known : answer);
  };
  const { url } = await serve(handler);
  return { url, lost, answered };
}

const connectionHeader = (request: string): string => /connection: (.*)\r/i.exec(request)?.[1] ?? '';

const repeated: [string, (client: V2Client) => Promise<unknown>][] = [
  ['a read', (client) => client.get(KEY)],
  ['a set that expects a value', (client) => client.set(KEY, 'u2', { prevValue: 'u1' })],
  ['a renewal', (client) => client.renew(KEY, { prevValue: 'u1', prevIndex: 4, ttl: null })],
  ['a removal that expects an index', (client) => client.delete(KEY, { prevIndex: 4 })],
];

const neverRepeated: [string, (client: V2Client) => Promise<unknown>][] = [
  ['an append', (client) => client.createInOrder('/_locks/x', 'u1', { ttl: 60 })],
  ['an unconditional set', (client) => client.set(KEY, 'u1')],
];

describe('on a stale connection, which is closed before its second answer,', () => {
  test.each(repeated)(
    '%s is sent again to the same member on a new connection, and the member does not count as failing',
    async (_, call) => {
      const outage = vi.spyOn(RateLimit.prototype, 'startOutage');
      onTestFinished(() => outage.mockRestore());
      const [member, other] = [await serveOnce(), await serveOnce()];
      const client = connect({ endpoints: [member.url, other.url] });
      await client.get('/known');
      await call(client);
      expect(member.lost).toHaveLength(1);
      expect(member.answered).toEqual(['GET /v2/keys/known', ...member.lost]);
      expect(other.answered).toEqual([]);
      expect(outage).not.toHaveBeenCalled();
    },
  );

  test.each(neverRepeated)('%s is not sent again, and the member does not count as failing', async (_, call) => {
    const [member, other] = [await serveOnce(), await serveOnce()];
    const client = connect({ endpoints: [member.url, other.url] });
    await client.get('/known');
    await expect(call(client)).rejects.toMatchObject({ outcomeUnknown: true, failures: [{ endpoint: member.url }] });
    await client.get(KEY);
    expect(member.lost).toHaveLength(1);
    expect(member.answered).toEqual(['GET /v2/keys/known', `GET /v2/keys${KEY}`]);
    expect(other.answered).toEqual([]);
  });

  test('a long poll is sent again', async () => {
    const member = await serveOnce(rawAnswer(200, { action: 'delete', node: file(KEY, { modifiedIndex: 9 }) }));
    const client = connect({ endpoints: member.url });
    const poll = () => client.watch(KEY, { after: 8, timeout: 5 });
    expect([await poll(), await poll()]).toMatchObject([{ action: 'delete' }, { action: 'delete' }]);
    expect([member.lost.length, member.answered.length]).toEqual([1, 2]);
  });

  test('a condition that fails the second time has an unknown outcome', async () => {
    const member = await serveOnce(rawAnswer(404, failed(100)));
    const client = connect({ endpoints: member.url });
    await client.get('/known');
    const error = await rejection(client.delete(KEY, { prevValue: 'u1' }), errors.EtcdKeyNotFound);
    expect(error).toMatchObject({ outcomeUnknown: true, failures: [{ endpoint: member.url }] });
  });
});

test('if the server closes connections after one answer, requests ask for that with `connection: close`', async () => {
  const heads: string[] = [];
  const server = await serve((socket, request) => {
    heads.push(connectionHeader(request));
    socket.end(rawAnswer(200, got(KEY)));
  });
  const client = connect({ endpoints: server.url });
  for (let calls = 0; calls < 8; calls += 1) await client.get(KEY);
  // Before it is noticed, one more request may have been sent and lost.
  expect(heads.slice(0, 2)).toEqual(['keep-alive', 'keep-alive']);
  expect(new Set(heads.slice(4))).toEqual(new Set(['close']));
});

test('if the server answers with `connection: close`, nothing is pipelined, and requests ask for that', async () => {
  const heads: string[][] = [];
  const server = await serve((socket, request) => {
    heads.push([request.split(' ', 1)[0] ?? '', connectionHeader(request)]);
    socket.end(rawAnswer(201, { action: 'create', node: file(KEY) }, { ...ANSWER_HEADERS, connection: 'close' }));
  });
  const client = connect({ endpoints: server.url });
  await client.get(KEY);
  for (let calls = 0; calls < 2; calls += 1)
    await (await client.createInOrder('/_locks/x', 'u1', { ttl: 60, listing: true })).listing;
  expect(heads).toEqual([
    ['GET', 'keep-alive'],
    ['POST', 'close'],
    ['POST', 'close'],
  ]);
});

test('ten minutes after the server last closed a connection by itself, connections are kept again', async () => {
  let closes = true;
  let last = '';
  const server = await serve((socket, request) => {
    last = connectionHeader(request);
    if (closes) socket.end(rawAnswer(200, got(KEY)));
    else socket.write(rawAnswer(200, got(KEY)));
  });
  const client = connect({ endpoints: server.url });
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  for (let calls = 0; calls < 8; calls += 1) await client.get(KEY);
  closes = false;
  for (const minutes of [0, 5, 4]) {
    vi.advanceTimersByTime(minutes * 60_000);
    await client.get(KEY);
    expect(last).toBe('close');
  }
  vi.advanceTimersByTime(2 * 60_000);
  for (let calls = 0; calls < 2; calls += 1) await client.get(KEY);
  expect(last).toBe('keep-alive');
});
