import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { inject, onTestFinished } from 'vitest';

export interface AlteredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Returns the changes to etcd's answer; undefined leaves the answer unchanged. */
export type Alter = (
  asked: string,
  answer: AlteredAnswer,
  query?: URLSearchParams,
) => Partial<AlteredAnswer> | undefined;

/** Starts a member that forwards all requests to a real one and alters the answers; the end of the test stops it. */
export async function useAlteredMember(alter: Alter, target = inject('etcd')): Promise<string> {
  const server = createServer(async (incoming, outgoing) => {
    // Without an answer, such as from a watch that ends with etcd, the client loses its connection.
    const answer = await forward(incoming, target).catch(() => outgoing.destroy());
    if (!('status' in answer)) return;
    const { pathname, searchParams } = new URL(incoming.url ?? '/', target);
    const { status, headers, body } = { ...answer, ...alter(`${incoming.method} ${pathname}`, answer, searchParams) };
    outgoing.writeHead(status, headers).end(body);
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

async function forward(incoming: IncomingMessage, target: string): Promise<AlteredAnswer> {
  const { method = 'GET', url = '/' } = incoming;
  const body = await text(incoming);
  const headers = { 'content-type': incoming.headers['content-type'] ?? 'text/plain' };
  const answer = await fetch(new URL(url, target), { method, headers, ...(body === '' ? {} : { body }) });
  const headersKept = [...answer.headers].filter(
    ([name]) => !/^(content-length|connection|transfer-encoding)$/.test(name),
  );
  return { status: answer.status, headers: Object.fromEntries(headersKept), body: await answer.text() };
}
