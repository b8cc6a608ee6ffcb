import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { EtcdStaleToken, Fence } from '../../src/index.ts';

export interface FencedResource {
  /** Accepts `POST <url>?token=<token>`: answers 200 for an accepted write, 409 for a stale token. */
  readonly url: string;
  /** The tokens of the accepted writes, in order. */
  readonly written: readonly bigint[];
  /** The tokens of the rejected writes. */
  readonly refused: readonly bigint[];
  write(token: bigint): Promise<void>;
}

/** Starts a resource that other processes write to, guarded by a fence; the end of the test stops it. */
export async function fencedResource(): Promise<FencedResource> {
  const fence = new Fence();
  const written: bigint[] = [];
  const refused: bigint[] = [];
  const write = async (token: bigint): Promise<void> => {
    await fence.accept('resource', token);
    written.push(token);
  };
  const server = http.createServer(async ({ url = '' }, answer) => {
    const token = BigInt(new URL(url, 'http://resource').searchParams.get('token') ?? '');
    const trouble = await write(token).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (trouble) refused.push(token);
    answer.writeHead(trouble instanceof EtcdStaleToken ? 409 : trouble ? 500 : 200).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, written, refused, write };
}
