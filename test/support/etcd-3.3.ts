import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer, json } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { inject, onTestFinished } from 'vitest';

export interface OldEtcd {
  readonly url: string;
  /** Every request so far, such as `POST /v3beta/kv/txn`. */
  readonly requests: readonly string[];
}

/** The gateway of etcd 3.3 has these below `/kv` only. */
const LATER = ['/lease/revoke', '/lease/timetolive', '/lease/leases'];
const CODES: Readonly<Record<number, string>> = { 3: 'InvalidArgument', 5: 'NotFound', 9: 'FailedPrecondition' };

/**
 * Starts a server that speaks as the gateway of an etcd of this version: its version, its paths and its errors, in front of the shared etcd.
 * The end of the test stops it.
 */
export async function useOldEtcd(version: string): Promise<OldEtcd> {
  const etcd = inject('etcd');
  const requests: string[] = [];
  const server = http.createServer((incoming, outgoing) => {
    requests.push(`${incoming.method} ${incoming.url}`);
    handle(incoming, outgoing).catch(() => outgoing.destroy());
  });

  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { url = '' } = incoming;
    if (url === '/version')
      return void outgoing.end(JSON.stringify({ etcdserver: version, etcdcluster: `${version.slice(0, 4)}0` }));
    const path = url.startsWith('/v3beta/') ? url.slice('/v3beta'.length) : undefined;
    if (path === undefined || LATER.includes(path)) return void outgoing.writeHead(404).end('Not Found\n');
    const upstream = http.request(`${etcd}/v3${path}`, { method: 'POST', headers: incoming.headers });
    outgoing.once('close', () => upstream.destroy());
    upstream.end(await buffer(incoming));
    const [answer] = (await once(upstream, 'response')) as [IncomingMessage];
    const { statusCode = 502 } = answer;
    // Its errors come in chunks, with trailers.
    outgoing.writeHead(statusCode, { 'content-type': 'application/json', trailer: 'Grpc-Trailer-Content-Type' });
    outgoing.flushHeaders();
    if (statusCode === 200) return pipeline(answer, outgoing);
    const { code, message } = (await json(answer)) as { code: number; message: string };
    outgoing.addTrailers({ 'Grpc-Trailer-Content-Type': 'application/grpc' });
    outgoing.end(JSON.stringify({ error: `rpc error: code = ${CODES[code] ?? 'Unknown'} desc = ${message}`, code }));
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}
