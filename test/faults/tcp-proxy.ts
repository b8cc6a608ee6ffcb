import { now } from '../support/stalls/stalls.mjs';
import { requestLength } from '../support/tcp-server.ts';
import { type Direction, Link } from './link.ts';
import { startRelay } from './relay.ts';

export interface Request {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly body: string;
  /** When the whole request had arrived, on the machine's monotonic clock. */
  readonly at: number;
  /** The first piece of its answer, which may be all of it, once the server has sent that. */
  answer?: string;
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
  /** Every request over HTTP/1 so far, including lost ones. */
  readonly requests: readonly Request[];
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
  swallow(match: (request: Request) => boolean): Promise<number>;
  /** Lets new connections work again, and ends the delay. */
  heal(): void;
  /** Stops listening and closes all sockets on both sides. */
  stop(): Promise<void>;
}

interface Swallow {
  readonly match: (request: Request) => boolean;
  readonly answered: (status: number) => void;
}

/** Starts a proxy before one server that can break the network to it. */
export async function startTcpProxy(target?: string): Promise<TcpProxy> {
  const requests: Request[] = [];
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
    const read = requestReader();
    let swallow: Swallow | undefined;
    let last: Request | undefined;
    const link = new Link(client, proxy.target, {
      lost,
      delay: () => delay,
      look(direction, bytes) {
        if (direction === 'requests') {
          for (const request of read(bytes)) {
            last = request;
            swallow = record(request, !link.lost.has('requests')) ?? swallow;
          }
          return;
        }
        if (last !== undefined) last.answer ??= bytes.toString('latin1', 0, LONGEST_ANSWER);
        if (swallow !== undefined) {
          link.lose('answers');
          swallow.answered(statusIn(bytes));
          swallow = undefined;
        }
      },
    });
    return link;
  });

  /** Records a request, and takes the first `swallow()` that matches it, if any. */
  function record(request: Request, forwarded: boolean): Swallow | undefined {
    requests.push(request);
    if (!forwarded) return undefined;
    const swallow = [...swallows].find(({ match }) => match(request));
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

/** Most bytes of an answer that are kept. */
const LONGEST_ANSWER = 4096;

/** Returns a function that gets the bytes of one connection piece by piece, and returns the requests that are now complete. */
function requestReader(): (bytes: Buffer) => Request[] {
  let unread = '';
  let isHttp1 = true;
  return (bytes) => {
    if (!isHttp1) return [];
    unread += bytes.toString('latin1');
    // HTTP/2 begins with `PRI`, TLS with a byte that is no letter.
    isHttp1 = /^(?!PRI )[A-Z]/.test(unread) || unread === '';
    const requests: Request[] = [];
    for (let length = requestLength(unread); length !== undefined; length = requestLength(unread)) {
      const [, method, path] = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r\n/.exec(unread) ?? [];
      const body = unread.slice(unread.indexOf('\r\n\r\n') + 4, length);
      unread = unread.slice(length);
      if (method !== undefined && path !== undefined) requests.push({ method, path, body, at: now() });
    }
    return requests;
  };
}

const statusIn = (bytes: Buffer): number => Number(/^HTTP\/1\.[01] (\d{3})/.exec(bytes.toString('latin1', 0, 16))?.[1]);
