import { now } from '../support/stalls/stalls.mjs';
import { type Direction, Link } from './link.ts';
import { startRelay } from './relay.ts';

export interface RequestHead {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** When it came, on the machine's monotonic clock. */
  readonly at: number;
}

export interface TcpProxy {
  readonly url: string;
  /** Where new connections go to; without it they are reset. */
  target: string | undefined;
  /** Clients connected now. */
  readonly connections: number;
  /** Connections so far, the refused ones too. */
  readonly accepted: number;
  /** When each of them came, on the machine's monotonic clock. */
  readonly acceptedAt: readonly number[];
  /** Every request that has come so far, also those that were lost. TLS shows none. */
  readonly requests: readonly RequestHead[];
  /** Everything takes this long from now on, each way. */
  delay(ms: number): void;
  /** Resets every open connection, once. */
  cut(): void;
  /** Resets new connections until `heal()`. */
  refuse(): void;
  /**
   * What goes that way vanishes until `heal()`: nothing is reset or closed, and new connections are accepted in silence.
   * A connection that was open meanwhile has lost that direction for ever.
   */
  blackHole(way: Direction | 'both'): void;
  /**
   * The next request that matches goes through, and its connection answers nothing from then on. Resolves to the
   * answer's status once the server has begun with it.
   */
  swallow(match: (request: RequestHead) => boolean): Promise<number>;
  /** New connections work again, without delay. */
  heal(): void;
  /** Leaves no socket behind on either side. */
  stop(): Promise<void>;
}

interface Swallow {
  readonly match: (request: RequestHead) => boolean;
  readonly answered: (status: number) => void;
}

/** Stands before one server and breaks the network to it as told; knows bytes, and of HTTP how a message begins. */
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

  /** Notes a request, and takes the order to swallow its answer, where there is one. */
  function request(bytes: Buffer, goesOn: boolean): Swallow | undefined {
    const head = headIn(bytes);
    if (head === undefined) return undefined;
    requests.push(head);
    if (!goesOn) return undefined;
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

/** Clients send one request at a time, so that each begins a chunk. */
function headIn(bytes: Buffer): RequestHead | undefined {
  const [, method, path] = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r\n/.exec(bytes.toString('latin1', 0, 4096)) ?? [];
  return method === undefined || path === undefined ? undefined : { method, path, at: now() };
}

const statusIn = (bytes: Buffer): number => Number(/^HTTP\/1\.[01] (\d{3})/.exec(bytes.toString('latin1', 0, 16))?.[1]);
