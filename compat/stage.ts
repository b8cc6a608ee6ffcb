import { Lock } from '../src/index.ts';
import { untilEntries, useClient, useProxy } from '../test/support/locks.ts';
import type { EtcdProxy } from '../test/support/proxy.ts';
import { Historian, type Histories } from './history.ts';

const KEYS = '/v2/keys';

/** Replays a scenario: the shared server, behind a proxy that records the requests. */
export class Stage {
  readonly #proxy: EtcdProxy;
  #historians = new Map<string, Historian>();
  #begin = 0;

  private constructor(proxy: EtcdProxy) {
    this.#proxy = proxy;
  }

  static async open(): Promise<Stage> {
    return new Stage(await useProxy());
  }

  /** Returns a lock with its own client. */
  lock(name: string, lockPrefix = '/_locks'): Lock {
    return new Lock(useClient({ endpoints: this.#proxy.url, lockPrefix }), name);
  }

  /** Waits until the queue of the lock has `count` entries, and records its state. */
  async see(lock: Lock, count: number): Promise<void> {
    this.#historian(lock.path).state(await untilEntries(lock.path, count));
  }

  /** Discards everything recorded so far: it does not belong to the scenario. */
  forget(): void {
    this.#historians = new Map();
    this.#begin = this.#proxy.requests.length;
  }

  histories(): Histories {
    for (const request of this.#proxy.requests.slice(this.#begin)) {
      if (request.method === 'POST')
        this.#historian(decodeURIComponent(request.path.slice(KEYS.length))).append(request);
    }
    const histories = [...this.#historians].map(([path, { history }]) => [path, history] as const);
    return Object.fromEntries(histories.filter(([, { appends, states }]) => appends.length + states.length > 0));
  }

  #historian(path: string): Historian {
    const historian = this.#historians.get(path) ?? new Historian();
    this.#historians.set(path, historian);
    return historian;
  }
}
