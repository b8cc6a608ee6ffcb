import { now } from '../../time.ts';
import type { Endpoint } from '../endpoint.ts';
import type { RateLimit } from './rate-limit.ts';

/** One attempt of a call at one member. */
export interface MemberRequest {
  readonly endpoint: Endpoint;
  /** Index of the member in the list. */
  readonly index: number;
  /** When the attempt began: milliseconds on the monotonic clock. */
  readonly startedAt: number;
  /** Index of the member that was preferred when the call began. */
  readonly initial: number;
}

/** Chooses the member for each attempt by the results of earlier attempts. */
export class Members {
  readonly #list: readonly Endpoint[];
  readonly #rateLimit: RateLimit;
  /** Index of the member that calls begin with. */
  #preferred = 0;
  /** Members that have failed since any member last answered, in the order of their last failures. */
  readonly #failing = new Set<Endpoint>();
  /** For each member the latest start of a request that it has answered. */
  readonly #answered = new Map<Endpoint, number>();

  constructor(list: readonly Endpoint[], rateLimit: RateLimit) {
    this.#list = list;
    this.#rateLimit = rateLimit;
  }

  get count(): number {
    return this.#list.length;
  }

  /**
   * Returns the preferred member, or the next one after it that the call has not asked yet. Starts again when the call has
   * asked all of them.
   * @param asked indexes of the members that the call has asked; the choice is added
   * @param initial index of the member that was preferred when the call began; absent in the first choice of a call
   */
  choose(asked: Set<number>, initial = this.#preferred): MemberRequest {
    if (asked.size === this.count) asked.clear();
    let index = this.#preferred;
    while (asked.has(index)) index = this.#after(index);
    asked.add(index);
    // In an outage, each request goes to another member: the preferred one may never come back.
    if (this.#rateLimit.isOutage) this.#preferred = this.#after(index);
    return { endpoint: this.#list[index] as Endpoint, index, startedAt: now(), initial };
  }

  /** Prefers this member. Outside an outage, only if no other call has changed the preferred one since the call began. */
  answered({ endpoint, index, startedAt, initial }: MemberRequest): void {
    if (this.#rateLimit.isOutage || this.#preferred === initial) this.#preferred = index;
    this.#answered.set(endpoint, Math.max(startedAt, this.#lastAnswered(endpoint)));
    this.#failing.clear();
    this.#rateLimit.endOutage();
  }

  /**
   * Stops preferring this member. Ignored if it has answered a later request, unless it is an error of the socket.
   * @param cause the socket's error, if any. It shows the member's current state. Other failures may concern old requests.
   */
  failed(attempt: MemberRequest, cause: unknown): void {
    const { endpoint, index, startedAt } = attempt;
    if (!(cause instanceof Error) && startedAt < this.#lastAnswered(endpoint)) return;
    this.#addFailing(endpoint);
    if (this.#preferred === index) this.#preferred = this.#after(index);
  }

  /** Counts a slow member as failing. Its answer may still come, but more requests would not help. */
  overdue({ endpoint, startedAt }: MemberRequest): void {
    if (startedAt >= this.#lastAnswered(endpoint)) this.#addFailing(endpoint);
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#list.map((endpoint) => endpoint.destroy()));
  }

  #after(index: number): number {
    return (index + 1) % this.count;
  }

  #lastAnswered(endpoint: Endpoint): number {
    return this.#answered.get(endpoint) ?? 0;
  }

  #addFailing(endpoint: Endpoint): void {
    this.#failing.delete(endpoint);
    this.#failing.add(endpoint);
    if (this.#rateLimit.isOutage || this.#failing.size < this.count) return;
    // The member that failed longest ago is the most likely to work: its connection may have been reset just once.
    const [longestAgo = endpoint] = this.#failing;
    this.#preferred = this.#list.indexOf(longestAgo);
    this.#rateLimit.startOutage(this.count);
  }
}
