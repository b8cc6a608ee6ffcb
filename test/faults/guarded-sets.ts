import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { EtcdStaleToken, Fence } from '../../src/index.ts';

/**
 * A set that is only written as a whole: the version that the writer has read, and one addition. A writer that has read an
 * old version therefore removes what others have added since.
 */
class WholeSet {
  readonly #states: { readonly of: number; readonly addition: string }[] = [];

  /** Version of the current state. */
  get version(): number {
    return this.#states.length;
  }

  write(of: number, addition: string): void {
    this.#states.push({ of, addition });
  }

  /** Returns additions that were written, but are not in the set. */
  lost(): string[] {
    const there = new Set<string>();
    for (let at = this.version; at > 0; ) {
      const { of, addition } = this.#states[at - 1] as { of: number; addition: string };
      there.add(addition);
      at = of;
    }
    return this.#states.map(({ addition }) => addition).filter((addition) => !there.has(addition));
  }
}

export interface GuardedSets {
  readonly url: string;
  /** Returns how many additions were written to the set of that lock, and which of them were lost. */
  result(lock: string, set: 'fenced' | 'plain'): { readonly written: number; readonly lost: readonly string[] };
  stop(): Promise<void>;
}

/**
 * Starts a server with two sets for each lock. `plain` accepts every request; `fenced` refuses reads and writes with a token
 * lower than one it has seen. `GET <url>/<lock>/<set>?token=<token>` answers with a version, and
 * `POST <url>/<lock>/<set>?token=<token>&of=<version>&addition=<text>` writes. The status is 409 if the fence refuses.
 */
export async function startGuardedSets(): Promise<GuardedSets> {
  const fence = new Fence();
  const sets = new Map<string, WholeSet>();
  const setAt = (path: string): WholeSet => {
    const set = sets.get(path) ?? new WholeSet();
    sets.set(path, set);
    return set;
  };

  async function serve(method: string | undefined, { pathname, searchParams }: URL): Promise<number> {
    const set = setAt(pathname);
    if (pathname.endsWith('/fenced')) await fence.accept(pathname, BigInt(searchParams.get('token') ?? ''));
    if (method === 'POST') set.write(Number(searchParams.get('of')), searchParams.get('addition') ?? '');
    return set.version;
  }

  const server = http.createServer((request, answer) => {
    serve(request.method, new URL(request.url ?? '/', 'http://resource')).then(
      (version) => answer.end(String(version)),
      (error: unknown) => answer.writeHead(error instanceof EtcdStaleToken ? 409 : 500).end(String(error)),
    );
  });
  // A contender that was stopped must find its connection still open.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    result(lock, set) {
      const at = setAt(`/${lock}/${set}`);
      return { written: at.version, lost: at.lost() };
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
