import { ignore, pause, type Scope } from '../../base/cancellation.ts';
import type { Deadline } from '../../base/time.ts';
import type { EndpointFailure } from '../../errors.ts';
import type { Endpoint } from '../endpoint.ts';
import { Timeout } from '../timeout.ts';
import { combine, isMembersFault, markUnclear, stillSilent } from './failures.ts';
import { type HedgeAfter, hedge } from './hedge.ts';
import type { MemberRequest, Members } from './members.ts';
import type { RateLimit } from './rate-limit.ts';

/**
 * When a request may be sent again:
 * - `hedged`: as `safe`, and also while a member is slow to answer. For reads, and for writes that can take effect only once.
 * - `safe`: to another member after a failure, even if the first member may have carried it out
 * - `poll`: as `never`, and to the same member again if a reused connection was closed before the answer began
 * - `never`: only if it certainly was not carried out
 */
export type Repeat = 'hedged' | 'safe' | 'poll' | 'never';

export interface RoundOptions {
  readonly repeat: Repeat;
  /** Ends the call when it aborts. The caller also aborts it after the call, to end slower attempts. */
  readonly ending: Scope;
  /** Seconds that one attempt may take. If a member's answer is long: seconds without a piece of it. */
  readonly timeout: number;
  /** Seconds without a piece of an answer until a hedged call asks another member. */
  readonly hedgeAfter: number;
  /** After this, a failure ends the call, even if attempts are still under way. */
  readonly limit: Deadline;
  /** Whether the call keeps the process alive. */
  readonly ref: boolean;
}

/** Asks one member. `onPiece` may be called whenever a piece of a long answer has come: the member is not silent. */
export type Ask<T> = (endpoint: Endpoint, onPiece: () => void) => Promise<T>;

/** Maximum number of retries of one attempt whose connection was stale. A retry may get another stale one from the pool. */
const MAX_STALE_RETRIES = 2;

/** Maximum number of times that one call asks all members. After the first time, it asks them only if a lookup has found others. */
const MAX_ROUNDS = 2;

/** One call: asks the members until one answers. */
export class Round<T> {
  readonly #members: Members;
  readonly #rateLimit: RateLimit;
  readonly #options: RoundOptions;
  readonly #ask: Ask<T>;
  /** The members asked so far. Cleared when all have been asked, and before each attempt during an outage. */
  readonly #asked = new Set<Endpoint>();
  readonly #failures: EndpointFailure[] = [];
  readonly #underWay = new Set<MemberRequest>();
  #initial: Endpoint | undefined;
  #isTimedOut = false;
  /** Timeout of a hedged call as a whole; starts with the first attempt, and again with each piece of an answer. */
  #timeout: Timeout | undefined;

  constructor(members: Members, rateLimit: RateLimit, options: RoundOptions, ask: Ask<T>) {
    this.#members = members;
    this.#rateLimit = rateLimit;
    this.#options = options;
    this.#ask = ask;
  }

  /**
   * Asks the members, the preferred one first, until one answers. Asks each member once, apart from retries on a stale connection. A
   * hedged call asks members again while one of its attempts is unanswered. An outage rate-limits attempts, and may repeat a member.
   * When all members have failed and DNS then names others, asks these as well.
   * @throws the first error that is not the fault of a member; else one error with the failures of all members asked
   */
  async run(): Promise<T> {
    const { ending } = this.#options;
    try {
      for (let rounds = 1; ; rounds += 1) {
        const { generation, count: attempts } = this.#members;
        try {
          return await hedge(this.#attempt, { attempts, mayRetry: this.#mayRetry, isTimedOut: this.#isOver });
        } catch (error) {
          if (rounds === MAX_ROUNDS || !this.#mayRetry(error) || this.#isOver()) throw error;
          if (!(await this.#foundOthers(generation))) throw error;
        }
      }
    } catch (error) {
      ending.throwIfAborted();
      if (!isMembersFault(error)) throw error;
      const failures = [...this.#failures, ...[...this.#underWay].map(stillSilent)];
      // Without failures, the rate limit admitted no attempt.
      throw failures.length > 0 ? combine(failures) : error;
    } finally {
      this.#timeout?.pause();
    }
  }

  readonly #attempt = async (startHedge: HedgeAfter): Promise<T> => {
    const { repeat, ending, timeout, hedgeAfter, ref } = this.#options;
    const members = this.#members;
    // In an outage, all members are candidates again: the only one that this call has not asked may never come back.
    if (this.#rateLimit.isOutage) this.#asked.clear();
    await this.#rateLimit.admit(ending, ref);
    const attempt = members.choose(this.#asked, this.#initial);
    this.#initial = attempt.initial;
    let overdue: Timeout | undefined;
    let onPiece = ignore;
    if (repeat === 'hedged' && hedgeAfter < timeout) {
      if (!this.#timeout) this.#startTimeout();
      let isNoted = false;
      const onOverdue = (): void => {
        if (isNoted || !this.#underWay.has(attempt)) return;
        isNoted = true;
        members.overdue(attempt);
      };
      overdue = Timeout.run(hedgeAfter, onOverdue, { ref: false });
      // Also called right before the next attempt: if this starts an outage, that attempt is rate-limited already.
      startHedge(hedgeAfter, onOverdue);
      // A long answer is no silence: asking for it again would only make it slower.
      onPiece = (): void => {
        if (!this.#underWay.has(attempt)) return;
        overdue?.restart(hedgeAfter);
        startHedge(hedgeAfter, onOverdue);
        this.#startTimeout();
      };
    }
    this.#underWay.add(attempt);
    try {
      const result = await this.#askUnlessStale(attempt, onPiece);
      // A poll that ends without an event proves nothing about the member.
      if (result !== undefined || repeat !== 'poll') members.answered(attempt);
      return result;
    } catch (error) {
      if (!ending.aborted) this.#note(attempt, error);
      throw ending.aborted || isMembersFault(error)
        ? error
        : markUnclear(error, this.#failures, this.#underWay.size > 1);
    } finally {
      this.#underWay.delete(attempt);
      overdue?.pause();
    }
  };

  /** Starts the timeout of the whole call, or starts it again. */
  #startTimeout(): void {
    const { timeout, hedgeAfter } = this.#options;
    // Long enough for the member that is asked last to get its full timeout.
    const whole = timeout + hedgeAfter * (this.#members.count - 1);
    this.#isTimedOut = false;
    if (this.#timeout) this.#timeout.restart(whole);
    else this.#timeout = Timeout.run(whole, this.#onTimeout, { ref: false });
  }

  readonly #onTimeout = (): void => {
    this.#isTimedOut = true;
  };

  readonly #isOver = (): boolean => this.#isTimedOut || this.#options.limit.passed;

  readonly #mayRetry = (error: unknown): boolean => {
    const { repeat, ending } = this.#options;
    const onlyOnce = repeat === 'never' || repeat === 'poll';
    return !ending.aborted && isMembersFault(error) && !(onlyOnce && error.outcomeUnknown);
  };

  /**
   * Waits for a lookup of the members, for `hedgeAfter` seconds at most. Resolves to whether there are members that this generation did
   * not have.
   */
  async #foundOthers(generation: number): Promise<boolean> {
    const { hedgeAfter, limit, ending } = this.#options;
    const lookup = this.#members.lookUp();
    if (lookup) await Promise.race([lookup, pause(Math.min(hedgeAfter * 1000, limit.remaining), ending)]);
    return this.#members.generation !== generation;
  }

  /** Retries on a stale connection: a server may close a connection between requests just when the next request is sent. */
  async #askUnlessStale({ endpoint }: MemberRequest, onPiece: () => void): Promise<T> {
    for (let retries = 0; ; retries += 1) {
      try {
        return await this.#ask(endpoint, onPiece);
      } catch (error) {
        const { repeat, ending } = this.#options;
        const isStale = isMembersFault(error) && endpoint.wasStale(error);
        if (!isStale || ending.aborted || repeat === 'never' || retries === MAX_STALE_RETRIES) throw error;
        this.#failures.push({ endpoint: endpoint.url, error });
        this.#rateLimit.count();
      }
    }
  }

  #note(attempt: MemberRequest, error: unknown): void {
    if (isMembersFault(error)) {
      // A stale connection says nothing about the member.
      if (!attempt.endpoint.wasStale(error)) this.#members.failed(attempt, error.cause);
      this.#failures.push({ endpoint: attempt.endpoint.url, error });
    } else {
      this.#members.answered(attempt);
    }
  }
}
