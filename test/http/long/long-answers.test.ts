import type { Socket } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { EtcdConnectionFailed } from '../../../src/errors.ts';
import { RateLimit } from '../../../src/http/failover/rate-limit.ts';
import { V3Client } from '../../../src/v3/client.ts';
import { useBeatClock } from '../../support/beat-clock.ts';
import { connect, rejection, serve } from '../../support/clients.ts';
import { base64 } from '../../support/gateway.ts';
import { answer, httpAnswer, inTurn, silent, type TcpHandler } from '../../support/tcp-server.ts';
import { file, got, rawAnswer } from '../../support/v2-answers.ts';

const DIR = '/_locks/x';
const KEY = `${DIR}/00000000000000000004`;
/** Seconds without a piece of an answer until another member is asked. */
const HEDGE_AFTER = 0.15;
/** Milliseconds between two pieces. */
const GAP = 50;
/** Longer in all than the read timeout below. */
const PIECES = 15;
const READ_TIMEOUT = 0.5;

useBeatClock();

const listing = rawAnswer(200, got(DIR, { value: undefined, dir: true, nodes: [file(KEY)] }));
const headers = { cluster_id: '14841639068965178418', member_id: '1', revision: '9', raft_term: '2' };
const kv = { key: base64(KEY), value: base64('u1'), create_revision: '4', mod_revision: '4', version: '1' };
const range = httpAnswer(200, {}, JSON.stringify({ header: headers, kvs: [kv], count: '1' }));
const version = answer(httpAnswer(200, {}, JSON.stringify({ etcdserver: '3.4.23', etcdcluster: '3.4.0' })));

/** Sends an answer's head, then its body piece by piece, the first `count` of `PIECES` pieces. */
const inPieces =
  (raw: string, count = PIECES): TcpHandler =>
  (socket) => {
    const end = raw.indexOf('\r\n\r\n') + 4;
    const size = Math.ceil((raw.length - end) / PIECES);
    socket.write(raw.slice(0, end));
    const send = (at: number): void => {
      if (socket.destroyed || at === count) return;
      socket.write(raw.slice(end + at * size, end + (at + 1) * size));
      setTimeout(send, GAP, at + 1);
    };
    send(0);
  };

/** Sends a byte of a body again and again, without an end. */
const trickle: TcpHandler = (socket: Socket) => {
  socket.write('HTTP/1.1 200 OK\r\nx-etcd-index: 7\r\ntransfer-encoding: chunked\r\n\r\n');
  const send = (): void => {
    if (socket.destroyed) return;
    socket.write('1\r\n \r\n');
    setTimeout(send, GAP);
  };
  send();
};

/** Two stores, with a listing of one entry: how to read it, and a server's answer to that. */
const stores: [string, { raw: string; serving(listing: TcpHandler): TcpHandler; read: Read }][] = [
  [
    'v2',
    {
      raw: listing,
      serving: (handler) => handler,
      read: async (endpoints) => {
        const client = connect({ endpoints, readTimeout: READ_TIMEOUT });
        const { node } = await client.get(DIR, { recursive: true, attemptTimeout: HEDGE_AFTER });
        return node.nodes.map(({ key }) => key);
      },
    },
  ],
  [
    'v3',
    {
      raw: range,
      serving: (handler) => (socket, request) => (request.includes('/version') ? version : handler)(socket, request),
      read: async (endpoints) => {
        const client = new V3Client({ endpoints, randomizeEndpoints: false, readTimeout: READ_TIMEOUT });
        onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
        const { entries } = await client.requests.listings.read(DIR, { attemptTimeout: HEDGE_AFTER });
        return entries.map(({ key }) => key);
      },
    },
  ],
];
type Read = (endpoints: string[]) => Promise<string[]>;

const reads = ({ requests }: { requests: readonly string[] }) =>
  requests.filter((request) => !request.includes('/version')).length;

describe.each(stores)('on %s, a listing', (_, { raw, serving, read }) => {
  test('whose body takes longer than the read timeout is asked for once, and is no outage', async () => {
    const outage = vi.spyOn(RateLimit.prototype, 'startOutage');
    onTestFinished(() => outage.mockRestore());
    const etcd = await serve(serving(inPieces(raw)));
    expect(await read([etcd.url])).toEqual([KEY]);
    expect(reads(etcd)).toBe(1);
    expect(outage).not.toHaveBeenCalled();
  });

  test('that stops in mid-body is also asked for at the next member', async () => {
    const stopping = await serve(serving(inPieces(raw, 3)));
    const etcd = await serve(serving(answer(raw)));
    expect(await read([stopping.url, etcd.url])).toEqual([KEY]);
    expect([reads(stopping), reads(etcd)]).toEqual([1, 1]);
  });

  test('that stops in mid-body is asked for again at a single member', async () => {
    const etcd = await serve(serving(inTurn(inPieces(raw, 3), answer(raw))));
    expect(await read([etcd.url])).toEqual([KEY]);
    expect(reads(etcd)).toBe(2);
  });

  test('that stops in mid-body everywhere fails a read timeout after its last piece', async () => {
    const etcd = await serve(serving(inTurn(inPieces(raw, 3), silent)));
    const error = await rejection(read([etcd.url]), EtcdConnectionFailed);
    expect(error.failures[0]?.error.message).toBe(`the answer stopped for ${READ_TIMEOUT} s before its end`);
  });

  test('that never ends fails after six read timeouts', async () => {
    const start = performance.now();
    const etcd = await serve(serving(trickle));
    const error = await rejection(read([etcd.url]), EtcdConnectionFailed);
    expect(error.message).toBe(`${etcd.url}: the answer was not complete after ${6 * READ_TIMEOUT} s`);
    expect((performance.now() - start) / 1000).toBeGreaterThanOrEqual(6 * READ_TIMEOUT);
    expect(reads(etcd)).toBe(1);
  });
});

test('a renewal whose answer arrives slowly is also sent to the next member', async () => {
  const renewed = rawAnswer(200, { action: 'compareAndSwap', node: file(KEY) });
  const slow = await serve((socket, request) => (request.startsWith('PUT') ? trickle : silent)(socket, request));
  const etcd = await serve(answer(renewed));
  const client = connect({ endpoints: [slow.url, etcd.url] });
  const call = { prevValue: 'u1', prevIndex: 4, ttl: 60, attemptTimeout: HEDGE_AFTER };
  expect((await client.renew(KEY, call)).action).toBe('compareAndSwap');
});
