import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { inject, onTestFinished } from 'vitest';

/** The fields of the gateway's messages that are revisions of the store. */
const REVISION = /"((?:max_create_|create_|mod_|start_|compact_)?revision)":"(\d+)"/g;

/** Adds to all revisions in a message. 0 stands for no revision, and stays. */
const shift = (message: string, by: bigint): string =>
  message.replace(REVISION, (all, name, value) => (value === '0' ? all : `"${name}":"${BigInt(value) + by}"`));

/**
 * Starts a member that passes all requests on to a real etcd, whose store has had so many more revisions. The end of the test
 * stops it.
 */
export async function useShiftedRevisions(by: bigint, target = inject('etcd')): Promise<string> {
  const server = http.createServer(async (incoming, outgoing) => {
    const body = shift(await text(incoming), -by);
    const { 'content-length': _, ...headers } = incoming.headers;
    const upstream = http.request(new URL(incoming.url ?? '/', target), { method: incoming.method ?? 'GET', headers });
    outgoing.once('close', () => upstream.destroy());
    upstream.on('error', () => outgoing.destroy());
    upstream.once('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, { 'content-type': 'application/json' });
      outgoing.flushHeaders();
      // etcd sends each message of a watch in a piece of its own.
      answer.setEncoding('utf8').on('data', (piece: string) => outgoing.write(shift(piece, by)));
      answer.once('end', () => outgoing.end());
    });
    upstream.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
