import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface ConnectProxy {
  readonly url: string;
  /** The target of each tunnel that was asked for, with the credentials. */
  readonly asked: readonly { readonly target: string; readonly authorization: string | undefined }[];
  /** Number of tunnels that are open. */
  readonly open: number;
  /** Answers further requests with this status; 0: not at all. */
  answer(status: number): void;
  /** Cuts all tunnels. */
  cut(): void;
}

/**
 * Starts a proxy that only opens tunnels; the end of the test stops it.
 * @param hosts addresses of host names that only the proxy knows
 */
export async function useConnectProxy(hosts: Readonly<Record<string, string>> = {}): Promise<ConnectProxy> {
  const asked: { target: string; authorization: string | undefined }[] = [];
  const sockets = new Set<Socket>();
  let status = 200;
  const server = createServer((_, response) => response.writeHead(405).end());
  server.on('connect', ({ url = '', headers }, client: Socket) => {
    asked.push({ target: url, authorization: headers['proxy-authorization'] });
    client.on('error', () => {});
    // A server for HTTP leaves its half of the connection open.
    client.on('end', () => client.end());
    sockets.add(client);
    client.on('close', () => sockets.delete(client));
    if (status === 0) {
      client.resume();
      return;
    }
    if (status !== 200) {
      client.end(`HTTP/1.1 ${status} No\r\ncontent-length: 0\r\n\r\n`);
      return;
    }
    const { hostname, port } = new URL(`http://${url}`);
    const member = connect(Number(port || 80), hosts[hostname] ?? hostname, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      client.pipe(member).pipe(client);
    });
    member.on('error', () => client.destroy());
    client.on('close', () => member.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    server.close();
    cut();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    get open() {
      return sockets.size;
    },
    answer: (wanted) => {
      status = wanted;
    },
    cut,
  };
}
