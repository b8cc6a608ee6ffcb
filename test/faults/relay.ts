import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { Link } from './link.ts';

export interface Relay<L extends Link> {
  readonly url: string;
  /** Links whose client is still connected. */
  readonly links: ReadonlySet<L>;
  /** Stops listening and closes all sockets on both sides. */
  stop(): Promise<void>;
}

/** Listens on its own loopback port. `accept` makes a link for a new client, or returns undefined and handles it itself. */
export async function startRelay<L extends Link>(accept: (client: Socket) => L | undefined): Promise<Relay<L>> {
  const links = new Set<L>();
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const link = accept(client);
    if (link === undefined) return;
    links.add(link);
    client.once('close', () => links.delete(link));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    links,
    async stop() {
      const closed = once(server, 'close');
      server.close();
      const open = [...links];
      for (const link of open) link.destroy();
      await Promise.all([closed, ...open.map((link) => link.closed())]);
    },
  };
}
