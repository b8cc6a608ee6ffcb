import { ignore, orAborted, Scope } from '../cancellation.ts';
import type { Attempt } from '../http/cluster.ts';
import type { Endpoint } from '../http/endpoint.ts';
import { noAnswer } from '../http/failover/failures.ts';
import { Timeout } from '../http/timeout.ts';

/**
 * What a client asks of each member once, and then knows, such as a token. Calls that need it at the same time share one
 * request, which therefore does not end with any of them.
 */
export class AskedOnce<T> {
  readonly #known = new WeakMap<Endpoint, T>();
  readonly #underWay = new WeakMap<Endpoint, Promise<T>>();

  /** Returns what the member has answered, if it has. Costs less than {@link get}. */
  known(endpoint: Endpoint): T | undefined {
    return this.#known.get(endpoint);
  }

  /**
   * Resolves to what the member has answered.
   * @param ask makes the request, if nobody has made it yet
   * @throws {EtcdConnectionFailed} if there is no answer within the time of the attempt; a later attempt may use the answer
   */
  async get(one: Attempt, ask: () => Promise<T>): Promise<T> {
    const { endpoint, ending, timeout, lane } = one;
    const answer = this.#underWay.get(endpoint) ?? this.#ask(endpoint, ask);
    const scope = new Scope(ending);
    const timer = Timeout.run(timeout, () => scope.abort(noAnswer(timeout)), { ref: lane !== 'background' });
    try {
      return await orAborted(answer, scope);
    } finally {
      timer.pause();
      scope.dispose();
    }
  }

  /** Makes the next call ask again, unless another call has already got a newer answer than this one. */
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
