import type { Socket } from 'node:net';
import { inject, onTestFinished } from 'vitest';
import { httpAnswer, startTcpServer } from './tcp-server.ts';

export interface OneAnswerProxy {
  readonly url: string;
  /** Requests passed on to etcd, such as `POST /v2/keys/_locks/x`. */
  readonly passed: readonly string[];
  /** Requests ignored because an earlier one on their connection has no answer yet, or was the last one answered. */
  readonly ignored: readonly string[];
}

export interface OneAnswerOptions {
  /** Closes each connection after one answer, without a `Connection: close` header. Default false. */
  readonly closes?: boolean;
}

/** Starts a proxy that handles one request at a time, and ignores requests pipelined behind it on the same connection. */
export async function useOneAnswerProxy({ closes = false }: OneAnswerOptions = {}): Promise<OneAnswerProxy> {
  const passed: string[] = [];
  const ignored: string[] = [];
  const busy = new WeakSet<Socket>();
  const server = await startTcpServer(async (socket, raw) => {
    const [method = '', path = ''] = raw.split(' ', 2);
    if (busy.has(socket)) return void ignored.push(`${method} ${path}`);
    busy.add(socket);
    passed.push(`${method} ${path}`);
    const answer = await pass(method, path, raw, socket).catch(() => undefined);
    if (answer === undefined || !socket.writable) return void socket.destroy();
    if (closes) return void socket.end(answer);
    busy.delete(socket);
    socket.write(answer);
  });
  onTestFinished(() => server.stop());
  return { url: server.url, passed, ignored };
}

async function pass(method: string, path: string, raw: string, socket: Socket): Promise<string> {
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  socket.once('close', leave);
  try {
    const response = await fetch(inject('etcd') + path, {
      method,
      body: method === 'GET' || method === 'DELETE' ? null : raw.slice(raw.indexOf('\r\n\r\n') + 4),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      signal: gone.signal,
    });
    const body = await response.text();
    // Hop-by-hop headers are not forwarded, nor the length, which is that of the encoded body.
    const kept = [...response.headers].filter(
      ([name]) => !/^(transfer-encoding|content-length|connection)$/.test(name),
    );
    return httpAnswer(response.status, Object.fromEntries(kept), body);
  } finally {
    socket.off('close', leave);
  }
}
