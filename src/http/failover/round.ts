import type { Scope } from '../../cancellation.ts';
import type { EndpointFailure } from '../../errors.ts';
import type { Deadline } from '../../time.ts';
import type { Endpoint } from '../endpoint.ts';
import { Timeout } from '../timeout.ts';
import { afterOthers, combine, isMembersFault, stillSilent } from './failures.ts';
import { type AskAnotherAfter, inTurn } from './hedge.ts';
import type { Asked, Members } from './members.ts';
import type { Pace } from './rate-limit.ts';

/**
 * `hedged`, for reads and what can happen once only: while a member takes long, the next one is asked, too. `safe`: may be
 * sent to another member though the first may have carried it out. `poll`: only to the same member, on another connection.
 * `never`: only if it surely was not carried out.
 */
export type Repeat = 'hedged' | 'safe' | 'poll' | 'never';

export interface RoundOptions {
  readonly repeat: Repeat;
  /** Aborts when the call ends early, and once it is over: slower answers are not needed then. */
  readonly ending: Scope;
  /** Seconds an attempt gets. */
  readonly timeout: number;
  /** Where hedged: seconds until another member is asked. */
  readonly patience: number;
  /** When those that are silent are given up at the latest. */
  readonly limit: Deadline;
  /** Whether it keeps the process alive. */
  readonly ref: boolean;
}

/** How often one attempt is repeated because its connection had been closed: the next connection used is a new one. */
const MOST_REPEATS = 2;

/** One call: tries the members until one answers. */
export class Round<T> {
  readonly #members: Members;
  readonly #pace: Pace;
  readonly #options: RoundOptions;
  readonly #ask: (endpoint: Endpoint) => Promise<T>;
  /** Members asked since all of them were, or since the outage began. */
  readonly #before = new Set<number>();
  readonly #failures: EndpointFailure[] = [];
  readonly #underWay = new Set<Asked>();
  #first: number | undefined;
  #late = false;
  /** Of the whole round; begins with the first attempt. */
  #timeout: Timeout | undefined;

  constructor(members: Members, pace: Pace, options: RoundOptions, ask: (endpoint: Endpoint) => Promise<T>) {
    this.#members = members;
    this.#pace = pace;
    this.#options = options;
    this.#ask = ask;
  }

  /**
   * Tries the call on each member once (where hedged, as often as its time allows), until it is ended: on the present
   * one where it has not been asked yet. While no member answers, each attempt waits for its turn.
   * @throws the first error that is not the member's fault; else one error that keeps every member's failure
   */
  async run(): Promise<T> {
    const { repeat, ending, limit } = this.#options;
    const onlyOne = repeat === 'never' || repeat === 'poll';
    const goesOn = (error: unknown): boolean =>
      !ending.aborted && isMembersFault(error) && !(onlyOne && error.outcomeUnknown);
    try {
      return await inTurn(this.#attempt, {
        count: this.#members.count,
        goesOn,
        isLate: () => this.#late || limit.passed,
      });
    } catch (error) {
      ending.throwIfAborted();
      // Without a failure no turn came.
      if (!isMembersFault(error) || this.#failures.length === 0) throw error;
      throw combine([...this.#failures, ...[...this.#underWay].map(stillSilent)]);
    } finally {
      this.#timeout?.pause();
    }
  }

  readonly #attempt = async (askAnotherAfter: AskAnotherAfter): Promise<T> => {
    const { repeat, ending, timeout, patience, ref } = this.#options;
    const members = this.#members;
    // In an outage, whom it asked before says nothing, and the one that is left may be the one that stays dead.
    if (this.#pace.isDown) this.#before.clear();
    await this.#pace.turn(ending, ref);
    const asked = members.choose(this.#before, this.#first);
    this.#first = asked.first;
    let overdue: Timeout | undefined;
    if (repeat === 'hedged' && patience < timeout) {
      // Each member gets its time.
      this.#timeout ??= Timeout.run(timeout + patience * (members.count - 1), this.#onTimeout, { ref: false });
      let noted = false;
      const onOverdue = (): void => {
        if (noted || !this.#underWay.has(asked)) return;
        noted = true;
        members.overdue(asked);
      };
      overdue = Timeout.run(patience, onOverdue, { ref: false });
      // First there too, so that the next one already waits for its turn if this was the last one hoped for.
      askAnotherAfter(patience, onOverdue);
    }
    this.#underWay.add(asked);
    try {
      const result = await this.#askAgainWhereStale(asked);
      // A poll that ends without an event proves nothing.
      if (result !== undefined) members.answered(asked);
      return result;
    } catch (error) {
      if (!ending.aborted) this.#note(asked, error);
      throw ending.aborted || isMembersFault(error)
        ? error
        : afterOthers(error, this.#failures, this.#underWay.size > 1);
    } finally {
      this.#underWay.delete(asked);
      overdue?.pause();
    }
  };

  readonly #onTimeout = (): void => {
    this.#late = true;
  };

  /** A server may close a connection at any time between two requests, and the next one may cross that. */
  async #askAgainWhereStale({ endpoint }: Asked): Promise<T> {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await this.#ask(endpoint);
      } catch (error) {
        const { repeat, ending } = this.#options;
        const isStale = isMembersFault(error) && endpoint.wasStale(error);
        if (!isStale || ending.aborted || repeat === 'never' || repeats === MOST_REPEATS) throw error;
        this.#failures.push({ endpoint: endpoint.url, error });
        this.#pace.sent();
      }
    }
  }

  #note(asked: Asked, error: unknown): void {
    if (isMembersFault(error)) {
      // That one connection was closed says nothing of the member.
      if (!asked.endpoint.wasStale(error)) this.#members.failed(asked, error.cause);
      this.#failures.push({ endpoint: asked.endpoint.url, error });
    } else {
      this.#members.answered(asked);
    }
  }
}
