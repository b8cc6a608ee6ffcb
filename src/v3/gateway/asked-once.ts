import { detached } from '../../base/async-context.ts';
import { ignore } from '../../base/cancellation.ts';
import type { ClusterAttempt } from '../../http/cluster.ts';
import type { Endpoint } from '../../http/endpoint.ts';
import { noAnswer } from '../../http/failover/failures.ts';
import { within } from '../../http/timeout.ts';

/**
 * Asks each member once and caches the answer, such as a token. Calls that need the answer at the same time share one request, so
 * the request continues when one of these calls ends.
 */
export class AskedOnce<T> {
  readonly #known = new WeakMap<Endpoint, T>();
  readonly #underWay = new WeakMap<Endpoint, Promise<T>>();

  /** Returns the cached answer of the member; undefined if there is none. Costs less than {@link get}. */
  known(endpoint: Endpoint): T | undefined {
    return this.#known.get(endpoint);
  }

  /**
   * Resolves to the answer of the member. Does not use the cache: call {@link known} first.
   * @param ask makes the request; called only if none is under way
   * @throws {EtcdConnectionFailed} if no answer comes within the attempt's timeout. A later answer is still cached.
   */
  async get(one: ClusterAttempt, ask: () => Promise<T>): Promise<T> {
    const { endpoint, timeout } = one;
    const answer = this.#underWay.get(endpoint) ?? detached(() => this.#ask(endpoint, ask));
    return within(answer, one, () => noAnswer(timeout));
  }

  /** Removes this answer from the cache, so that the next call asks again. Does nothing if a newer answer is cached. */
  forget(endpoint: Endpoint, answer: T): void {
    if (this.#known.get(endpoint) === answer) this.#known.delete(endpoint);
  }

  #ask(endpoint: Endpoint, ask: () => Promise<T>): Promise<T> {
    const answer = ask().then((value) => {
      this.#known.set(endpoint, value);
      return value;
    });
    const over = answer.finally(() => this.#underWay.delete(endpoint));
    this.#underWay.set(endpoint, over);
    over.catch(ignore);
    return over;
  }
}
