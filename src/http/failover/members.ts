import { now } from '../../base/time.ts';
import type { Endpoint } from '../endpoint.ts';
import type { RateLimit } from './rate-limit.ts';

/** One attempt of a call at one member. */
export interface MemberRequest {
  readonly endpoint: Endpoint;
  /** When the attempt began: milliseconds on the monotonic clock. */
  readonly startedAt: number;
  /** The member that was preferred when the call began. */
  readonly initial: Endpoint;
}

/** Chooses the member for each attempt by the results of earlier attempts. */
export class Members {
  #list: readonly Endpoint[];
  readonly #rateLimit: RateLimit;
  /** See {@link lookUp}. */
  readonly #lookUp: () => Promise<void> | undefined;
  /** The member that calls begin with. */
  #preferred: Endpoint;
  #generation = 0;
  /** Members that have failed since any member last answered, in the order of their last failures. */
  readonly #failing = new Set<Endpoint>();
  /** For each member the latest start of a request that it has answered. */
  readonly #answered = new Map<Endpoint, number>();

  /** @param list at least one member */
  constructor(
    list: readonly Endpoint[],
    rateLimit: RateLimit,
    lookUp: () => Promise<void> | undefined = () => undefined,
  ) {
    this.#list = list;
    this.#rateLimit = rateLimit;
    this.#lookUp = lookUp;
    this.#preferred = list[0] as Endpoint;
  }

  get list(): readonly Endpoint[] {
    return this.#list;
  }

  get count(): number {
    return this.#list.length;
  }

  /** Increases with each lookup that has found new members. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * Looks up the members because all have failed, unless that was done a moment ago. Returns a promise if it is worth to wait for the
   * lookup; the promise never rejects.
   */
  lookUp(): Promise<void> | undefined {
    return this.#lookUp();
  }

  /** Replaces the list after a lookup. The preferred member stays preferred if it is still in the list and there is no outage. */
  replace(list: readonly Endpoint[]): void {
    const added = list.find((endpoint) => !this.#list.includes(endpoint));
    this.#list = list;
    if (added) this.#generation += 1;
    if (added && this.#rateLimit.isOutage) this.#preferred = added;
    if (!list.includes(this.#preferred)) this.#preferred = list[0] as Endpoint;
    for (const endpoint of [...this.#failing, ...this.#answered.keys()]) {
      if (list.includes(endpoint)) continue;
      this.#failing.delete(endpoint);
      this.#answered.delete(endpoint);
    }
  }

  /**
   * Returns the preferred member, or the next one after it that the call has not asked yet. Starts again when the call has
   * asked all of them.
   * @param asked the members that the call has asked; the choice is added
   * @param initial the member that was preferred when the call began; absent in the first choice of a call
   */
  choose(asked: Endpoint[], initial = this.#preferred): MemberRequest {
    if (this.#list.every((endpoint) => asked.includes(endpoint))) asked.length = 0;
    let endpoint = this.#preferred;
    while (asked.includes(endpoint)) endpoint = this.#after(endpoint);
    asked.push(endpoint);
    // In an outage, each request goes to another member: the preferred one may never come back.
    if (this.#rateLimit.isOutage) this.#preferred = this.#after(endpoint);
    return { endpoint, startedAt: now(), initial };
  }

  /** Prefers this member. Outside an outage, only if no other call has changed the preferred one since the call began. */
  answered({ endpoint, startedAt, initial }: MemberRequest): void {
    if (this.#list.includes(endpoint)) {
      if (this.#rateLimit.isOutage || this.#preferred === initial) this.#preferred = endpoint;
      this.#answered.set(endpoint, Math.max(startedAt, this.#lastAnswered(endpoint)));
    }
    // A set that is cleared gets a new table, even if it is empty.
    if (this.#failing.size > 0) this.#failing.clear();
    this.#rateLimit.endOutage();
  }

  /**
   * Stops preferring this member. Ignored if it has answered a later request, unless it is an error of the socket.
   * @param cause the socket's error, if any. It shows the member's current state. Other failures may concern old requests.
   */
  failed(attempt: MemberRequest, cause: unknown): void {
    if (!(cause instanceof Error) && this.#isOutdated(attempt)) return;
    this.#addFailing(attempt.endpoint);
    this.#leave(attempt.endpoint);
  }

  /** Stops preferring a member whose answer a call has awaited until its time limit. This is no failure: it may have had little time. */
  unanswered(attempt: MemberRequest): void {
    if (!this.#isOutdated(attempt)) this.#leave(attempt.endpoint);
  }

  /** Counts a slow member as failing. Its answer may still come, but more requests would not help. */
  overdue(attempt: MemberRequest): void {
    if (!this.#isOutdated(attempt)) this.#addFailing(attempt.endpoint);
  }

  /** Prefers the next member that has not failed, if this one is preferred. */
  #leave(endpoint: Endpoint): void {
    if (this.#preferred !== endpoint) return;
    let next = this.#after(endpoint);
    while (next !== endpoint && this.#failing.has(next)) next = this.#after(next);
    this.#preferred = next;
  }

  #after(endpoint: Endpoint): Endpoint {
    return this.#list[(this.#list.indexOf(endpoint) + 1) % this.count] as Endpoint;
  }

  /** Whether the member has answered a later request. */
  #isOutdated({ endpoint, startedAt }: MemberRequest): boolean {
    return startedAt < this.#lastAnswered(endpoint);
  }

  #lastAnswered(endpoint: Endpoint): number {
    return this.#answered.get(endpoint) ?? 0;
  }

  #addFailing(endpoint: Endpoint): void {
    if (!this.#list.includes(endpoint)) return; // DNS no longer names it
    this.#failing.delete(endpoint);
    this.#failing.add(endpoint);
    if (!this.#rateLimit.isOutage && this.#failing.size < this.count) return;
    void this.#lookUp();
    if (this.#rateLimit.isOutage) return;
    // The member that failed longest ago is the most likely to work: its connection may have been reset just once.
    const [longestAgo = endpoint] = this.#failing;
    this.#preferred = longestAgo;
    this.#rateLimit.startOutage(this.count);
  }
}
