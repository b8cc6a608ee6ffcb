import { ignore, pause, type Scope } from '../../base/cancellation.ts';
import type { Deadline } from '../../base/time.ts';
import type { EndpointFailure } from '../../errors.ts';
import type { Endpoint } from '../endpoint.ts';
import { Timeout } from '../timeout.ts';
import { combine, isMembersFault, markUnclear, stillSilent } from './failures.ts';
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
  readonly #isHedged: boolean;
  /** The members asked so far. Cleared when all have been asked, and before each attempt during an outage. */
  readonly #asked: Endpoint[] = [];
  readonly #failures: EndpointFailure[] = [];
  #underWay: readonly MemberRequest[] = [];
  #rounds = 0;
  /** Failed attempts are followed by another one until this number of attempts is reached. Hedged attempts may exceed it. */
  #enough = 0;
  #generation = 0;
  /** Number of attempts that have started, and of those that have not ended. Some may wait for their turns in an outage. */
  #started = 0;
  #running = 0;
  #initial: Endpoint | undefined;
  /** Starts another attempt of a hedged call; starts again with each attempt, and with each piece of an answer. */
  #silence: Timeout | undefined;
  /** Timeout of a hedged call as a whole; starts with the first attempt, and again with each piece of an answer. */
  #timeout: Timeout | undefined;
  #isTimedOut = false;
  #isSettled = false;
  #resolve: (answer: T) => void = ignore;
  #reject: (reason: unknown) => void = ignore;

  constructor(members: Members, rateLimit: RateLimit, options: RoundOptions, ask: Ask<T>) {
    this.#members = members;
    this.#rateLimit = rateLimit;
    this.#options = options;
    this.#ask = ask;
    this.#isHedged = options.repeat === 'hedged' && options.hedgeAfter < options.timeout;
  }

  /**
   * Asks the members, the preferred one first, until one answers. Asks each member once, apart from retries on a stale connection. A
   * hedged call asks members again while one of its attempts is unanswered. An outage rate-limits attempts, and may repeat a member.
   * When all members have failed and DNS then names others, asks these as well.
   * @throws the first error that is not the fault of a member; else one error with the failures of all members asked
   */
  run(): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#askAll();
    });
  }

  #askAll(): void {
    const { generation, count } = this.#members;
    this.#rounds += 1;
    this.#generation = generation;
    this.#enough = this.#started + count;
    this.#start();
  }

  /** Starts an attempt. */
  #start(): void {
    const { ending, ref } = this.#options;
    this.#started += 1;
    this.#running += 1;
    this.#silence?.pause();
    if (!this.#rateLimit.isOutage) {
      this.#rateLimit.count();
      this.#choose();
      return;
    }
    // In an outage, all members are candidates again: the only one that this call has not asked may never come back.
    this.#asked.length = 0;
    this.#rateLimit.admit(ending, ref).then(
      () => this.#choose(),
      (error) => this.#ends(error, true),
    );
  }

  #choose(): void {
    if (this.#isSettled) return;
    const request = this.#members.choose(this.#asked, this.#initial);
    this.#initial = request.initial;
    this.#underWay = [...this.#underWay, request];
    if (this.#isHedged) {
      this.#watchSilence();
      if (!this.#timeout) this.#startTimeout();
    }
    this.#send(request, 0);
  }

  #send(request: MemberRequest, retries: number): void {
    const onPiece = this.#isHedged ? (): void => this.#onPiece(request) : ignore;
    this.#ask(request.endpoint, onPiece).then(
      (answer) => this.#answered(request, answer),
      (error) => this.#failed(request, error, retries),
    );
  }

  #answered(request: MemberRequest, answer: T): void {
    this.#underWay = this.#underWay.filter((other) => other !== request);
    // A poll that ends without an event proves nothing about the member.
    if (answer !== undefined || this.#options.repeat !== 'poll') this.#members.answered(request);
    this.#settle();
    this.#resolve(answer);
  }

  /** Retries on a stale connection: a server may close a connection between requests just when the next request is sent. */
  #failed(request: MemberRequest, error: unknown, retries: number): void {
    const { repeat, ending } = this.#options;
    const { endpoint } = request;
    const isFault = isMembersFault(error);
    const isStale = isFault && endpoint.wasStale(error);
    if (isFault && !ending.aborted) this.#failures.push({ endpoint: endpoint.url, error });
    if (isStale && !ending.aborted && repeat !== 'never' && retries < MAX_STALE_RETRIES) {
      this.#rateLimit.count();
      this.#send(request, retries + 1);
      return;
    }
    this.#underWay = this.#underWay.filter((other) => other !== request);
    if (ending.aborted) this.#ends(error);
    else if (!isFault) {
      this.#members.answered(request);
      this.#ends(markUnclear(error, this.#failures, this.#underWay.length > 0));
    } else {
      // A stale connection says nothing about the member.
      if (!isStale) this.#members.failed(request, error.cause);
      this.#ends(error);
    }
  }

  /** Ends an attempt with this error. @param isRefused whether the rate limit has refused the attempt */
  #ends(error: unknown, isRefused = false): void {
    this.#running -= 1;
    if (this.#isSettled) return;
    if (!this.#mayRetry(error)) this.#rejectWith(error);
    else if (this.#isOver) this.#timedOut(error);
    // While a refused attempt waited for its turn, nothing watched for the silence of the others.
    else if (this.#started < this.#enough || (isRefused && this.#running > 0)) this.#start();
    else if (this.#running === 0) void this.#askOthers(error);
  }

  /** Asks the members again if a lookup has found others. */
  async #askOthers(error: unknown): Promise<void> {
    if (this.#rounds < MAX_ROUNDS && (await this.#foundOthers())) this.#askAll();
    else this.#rejectWith(error);
  }

  /** The next call begins with a member that this one has not asked, if there is one. */
  #timedOut(error: unknown): void {
    for (const request of this.#underWay) this.#members.unanswered(request);
    this.#rejectWith(error);
  }

  #rejectWith(error: unknown): void {
    this.#settle();
    this.#reject(this.#reasonFor(error));
  }

  #reasonFor(error: unknown): unknown {
    const { ending } = this.#options;
    if (ending.aborted) return ending.reason;
    const failures = [...this.#failures, ...this.#underWay.map(stillSilent)];
    // Without failures, the rate limit admitted no attempt.
    return isMembersFault(error) && failures.length > 0 ? combine(failures) : error;
  }

  #settle(): void {
    this.#isSettled = true;
    this.#silence?.pause();
    this.#timeout?.pause();
  }

  #watchSilence(): void {
    this.#silence?.pause();
    this.#silence = Timeout.run(this.#options.hedgeAfter, this.#onSilence, { ref: false });
  }

  /** No attempt has shown a sign of life for `hedgeAfter` seconds. */
  readonly #onSilence = (): void => {
    // If this starts an outage, the next attempt is rate-limited already.
    for (const request of this.#underWay) this.#members.overdue(request);
    this.#start();
  };

  /** A long answer is no silence: asking for it again would only make it slower. */
  #onPiece(request: MemberRequest): void {
    if (this.#isSettled || !this.#underWay.includes(request)) return;
    this.#watchSilence();
    this.#startTimeout();
  }

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

  get #isOver(): boolean {
    return this.#isTimedOut || this.#options.limit.passed;
  }

  #mayRetry(error: unknown): boolean {
    const { repeat, ending } = this.#options;
    const onlyOnce = repeat === 'never' || repeat === 'poll';
    return !ending.aborted && isMembersFault(error) && !(onlyOnce && error.outcomeUnknown);
  }

  /**
   * Waits for a lookup of the members, for `hedgeAfter` seconds at most. Resolves to whether there are members that this round did not
   * have.
   */
  async #foundOthers(): Promise<boolean> {
    const { hedgeAfter, limit, ending } = this.#options;
    const lookup = this.#members.lookUp();
    if (lookup) await Promise.race([lookup, pause(Math.min(hedgeAfter * 1000, limit.remaining), ending)]);
    return this.#members.generation !== this.#generation;
  }
}
