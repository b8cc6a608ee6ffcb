import { now } from '../support/stalls/stalls.mjs';
import { type Direction, Link } from './link.ts';
import { startRelay } from './relay.ts';

export interface RequestHead {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** When the request arrived, on the machine's monotonic clock. */
  readonly at: number;
}

export interface TcpProxy {
  readonly url: string;
  /** URL of the server for new connections; without it they are reset. */
  target: string | undefined;
  /** Number of clients connected now. */
  readonly connections: number;
  /** Number of connections so far, including refused ones. */
  readonly accepted: number;
  /** When each connection arrived, on the machine's monotonic clock. */
  readonly acceptedAt: readonly number[];
  /** Every request so far, including lost ones. Empty for TLS. */
  readonly requests: readonly RequestHead[];
  /** Delays everything from now on by this long, in each direction. */
  delay(ms: number): void;
  /** Resets every open connection, once. */
  cut(): void;
  /** Resets new connections until `heal()`. */
  refuse(): void;
  /**
   * Drops everything in that direction until `heal()`: nothing is reset or closed, and new connections are accepted. A
   * connection that is open during the fault loses that direction for ever.
   */
  blackHole(way: Direction | 'both'): void;
  /**
   * Forwards the next request that matches, and drops the answer and all later ones on its connection. Resolves to the
   * status of the answer once the server has begun to send it.
   */
  swallow(match: (request: RequestHead) => boolean): Promise<number>;
  /** Lets new connections work again, and ends the delay. */
  heal(): void;
  /** Stops listening and closes all sockets on both sides. */
  stop(): Promise<void>;
}

interface Swallow {
  readonly match: (request: RequestHead) => boolean;
  readonly answered: (status: number) => void;
}

/** Starts a proxy before one server that can break the network to it. It reads only the first line of HTTP messages. */
export async function startTcpProxy(target?: string): Promise<TcpProxy> {
  const requests: RequestHead[] = [];
  const swallows = new Set<Swallow>();
  let lost: readonly Direction[] = [];
  let delay = 0;
  let refusing = false;
  const acceptedAt: number[] = [];

  const relay = await startRelay((client) => {
    acceptedAt.push(now());
    if (refusing || proxy.target === undefined) {
      client.on('error', () => {});
      client.resetAndDestroy();
      return undefined;
    }
    let swallow: Swallow | undefined;
    const link = new Link(client, proxy.target, {
      lost,
      delay: () => delay,
      look(direction, bytes) {
        if (direction === 'requests') {
          swallow = request(bytes, !link.lost.has('requests')) ?? swallow;
        } else if (swallow !== undefined) {
          link.lose('answers');
          swallow.answered(statusIn(bytes));
          swallow = undefined;
        }
      },
    });
    return link;
  });

  /** Records a request, and takes the first `swallow()` that matches it, if any. */
  function request(bytes: Buffer, forwarded: boolean): Swallow | undefined {
    const head = headIn(bytes);
    if (head === undefined) return undefined;
    requests.push(head);
    if (!forwarded) return undefined;
    const swallow = [...swallows].find(({ match }) => match(head));
    if (swallow !== undefined) swallows.delete(swallow);
    return swallow;
  }

  const proxy: TcpProxy = {
    url: relay.url,
    target,
    requests,
    acceptedAt,
    get connections() {
      return relay.links.size;
    },
    get accepted() {
      return acceptedAt.length;
    },
    delay(ms) {
      delay = ms;
    },
    cut() {
      for (const link of relay.links) link.reset();
    },
    refuse() {
      refusing = true;
    },
    blackHole(way) {
      lost = way === 'both' ? ['requests', 'answers'] : [way];
      for (const link of relay.links) link.lose(...lost);
    },
    swallow: (match) => new Promise((answered) => swallows.add({ match, answered })),
    heal() {
      lost = [];
      delay = 0;
      refusing = false;
    },
    stop: () => relay.stop(),
  };
  return proxy;
}

/** Clients send one request at a time, so each request begins a chunk. */
function headIn(bytes: Buffer): RequestHead | undefined {
  const [, method, path] = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r\n/.exec(bytes.toString('latin1', 0, 4096)) ?? [];
  return method === undefined || path === undefined ? undefined : { method, path, at: now() };
}

const statusIn = (bytes: Buffer): number => Number(/^HTTP\/1\.[01] (\d{3})/.exec(bytes.toString('latin1', 0, 16))?.[1]);
