import { detached } from '../base/async-context.ts';
import { ignore, orAborted, Scope, type Source } from '../base/cancellation.ts';
import { Deadline, now } from '../base/time.ts';
import { EtcdConnectionFailed, EtcdException, EtcdInsufficientPermissions, EtcdUnusableAnswer } from '../errors.ts';
import type { Endpoint } from '../http/endpoint.ts';

/** A query whether a member supports `refresh`, under way or answered. */
interface VersionQuery {
  readonly endpoint: Endpoint;
  readonly askedAt: number;
  readonly answer: Promise<boolean>;
  /** The answer, once it has come. */
  supported: boolean | undefined;
}

export interface QueryOptions {
  /** Asks the member for its version. Resolves to whether that version supports `refresh`; undefined if that is not decided yet. */
  readonly ask: () => Promise<boolean | undefined>;
  /** Seconds, counted from when the member was asked. After that, the query resolves to false. */
  readonly timeout: number;
  /** Ends the wait when it aborts. */
  readonly ending: Source;
}

const TOO_LATE = Symbol('too late');

/**
 * Finds out whether the cluster supports `refresh`, which renews an entry without waking watchers. Asks the member in use
 * once, again after each failover, and again as long as the cluster has not decided on its version. Without an answer, a renewal can still be a plain write.
 */
export class RefreshSupport {
  #last: VersionQuery | undefined;

  /** Returns what is known about this member without asking. */
  known(endpoint: Endpoint): boolean | undefined {
    return this.#last?.endpoint === endpoint ? this.#last.supported : undefined;
  }

  /**
   * Asks this member unless it has answered before. Resolves to false if no version comes within the timeout. Queries at the same
   * time share one request, but each has its own timeout.
   * @throws {EtcdConnectionFailed} if no connection could be made, so that a write could not be sent either
   * @throws the reason of `ending` if that aborts
   */
  async query(endpoint: Endpoint, { ask, timeout, ending }: QueryOptions): Promise<boolean> {
    if (this.#last?.endpoint !== endpoint) this.#last = detached(() => this.#start(endpoint, ask));
    const { supported, answer, askedAt } = this.#last;
    if (supported !== undefined) return supported;
    const scope = new Scope(ending).abortAt(new Deadline(askedAt + timeout * 1000), () => TOO_LATE, { ref: false });
    try {
      return await orAborted(answer, scope);
    } catch (error) {
      if (error === TOO_LATE) return false;
      throw error;
    } finally {
      scope.dispose();
    }
  }

  #start(endpoint: Endpoint, ask: QueryOptions['ask']): VersionQuery {
    const forget = (): void => {
      if (this.#last === query) this.#last = undefined;
    };
    const answer = ask().then(
      (supported) => {
        if (supported === undefined) forget();
        query.supported = supported;
        return supported ?? false;
      },
      (error: unknown) => {
        if (error instanceof EtcdUnusableAnswer || error instanceof EtcdInsufficientPermissions) {
          query.supported = false;
          return false;
        }
        forget();
        if (!(error instanceof EtcdException) || isUnsent(error)) throw error;
        return false;
      },
    );
    answer.catch(ignore); // the caller may have stopped waiting
    const query: VersionQuery = { endpoint, askedAt: now(), answer, supported: undefined };
    return query;
  }
}

const isUnsent = (error: EtcdException): boolean => error instanceof EtcdConnectionFailed && !error.outcomeUnknown;
