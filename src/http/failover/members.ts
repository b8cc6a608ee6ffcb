import { now } from '../../time.ts';
import type { Endpoint } from '../endpoint.ts';
import type { Pace } from './rate-limit.ts';

/** One request to one member. */
export interface Asked {
  readonly endpoint: Endpoint;
  readonly at: number;
  /** Milliseconds on the monotonic clock. */
  readonly since: number;
  /** The present member as the call began: whoever answers becomes it, unless others have moved on since. */
  readonly first: number;
}

/** Which member is to be asked, by what became of those asked before. */
export class Members {
  readonly #list: readonly Endpoint[];
  readonly #pace: Pace;
  #current = 0;
  /** Those that gave no answer since any member last did, the one that failed longest ago first. */
  readonly #failing = new Set<Endpoint>();
  /** When each was asked what it has answered, the latest. */
  readonly #heard = new Map<Endpoint, number>();

  constructor(list: readonly Endpoint[], pace: Pace) {
    this.#list = list;
    this.#pace = pace;
  }

  get count(): number {
    return this.#list.length;
  }

  /**
   * The present member, or the next after it that this call has not asked yet; once it has asked all, anew.
   * @param before whom this call has asked, to which the choice is added
   * @param first the present member as the call began, if this is not its first choice
   */
  choose(before: Set<number>, first = this.#current): Asked {
    if (before.size === this.count) before.clear();
    let at = this.#current;
    while (before.has(at)) at = this.#after(at);
    before.add(at);
    // While none answers, each turn is for another member: the present one may be the one that stays dead.
    if (this.#pace.isDown) this.#current = this.#after(at);
    return { endpoint: this.#list[at] as Endpoint, at, since: now(), first };
  }

  answered({ endpoint, at, since, first }: Asked): void {
    if (this.#pace.isDown || this.#current === first) this.#current = at;
    this.#heard.set(endpoint, Math.max(since, this.#lastHeard(endpoint)));
    this.#failing.clear();
    this.#pace.up();
  }

  /** @param cause what the socket reports, which is true right now: else it may have been asked long ago */
  failed(asked: Asked, cause: unknown): void {
    const { endpoint, at, since } = asked;
    if (!(cause instanceof Error) && since < this.#lastHeard(endpoint)) return;
    this.#fails(endpoint);
    if (this.#current === at) this.#current = this.#after(at);
  }

  /** It is silent for so long that another member is asked: the answer may come, but more requests would not help. */
  overdue({ endpoint, since }: Asked): void {
    if (since >= this.#lastHeard(endpoint)) this.#fails(endpoint);
  }

  async destroy(): Promise<void> {
    await Promise.all(this.#list.map((endpoint) => endpoint.destroy()));
  }

  #after(at: number): number {
    return (at + 1) % this.count;
  }

  #lastHeard(endpoint: Endpoint): number {
    return this.#heard.get(endpoint) ?? 0;
  }

  #fails(endpoint: Endpoint): void {
    this.#failing.delete(endpoint);
    this.#failing.add(endpoint);
    if (this.#pace.isDown || this.#failing.size < this.count) return;
    // The least is known of the one that failed first: its connection may have been reset just once.
    const [longestAgo = endpoint] = this.#failing;
    this.#current = this.#list.indexOf(longestAgo);
    this.#pace.down(this.count);
  }
}
