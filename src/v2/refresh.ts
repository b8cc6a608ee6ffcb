import { orAborted, Scope, type Source } from '../cancellation.ts';
import { EtcdConnectionFailed, EtcdException, EtcdInsufficientPermissions, EtcdUnusableAnswer } from '../errors.ts';
import type { Endpoint } from '../http/endpoint.ts';
import { Deadline, now } from '../time.ts';

interface Question {
  readonly endpoint: Endpoint;
  readonly askedAt: number;
  readonly answer: Promise<boolean>;
  /** The answer, once it is there. */
  known: boolean | undefined;
}

export interface Asking {
  /** Asks the member for its version and resolves to whether that version has `refresh`. */
  readonly ask: () => Promise<boolean>;
  /** Seconds after the question was sent at which a renewal does without the answer. */
  readonly patience: number;
  /** Ends the wait. */
  readonly ending: Source;
}

const LATE = Symbol('late');

/**
 * Whether the member in use takes `refresh`, which renews an entry and wakes no watcher. A member is asked once, and again
 * after another member was asked: that one may be older. Every renewal may do without the answer, since a plain write renews
 * as well.
 */
export class RefreshSupport {
  #last: Question | undefined;

  /** What is known of this member without asking. */
  knownOf(endpoint: Endpoint): boolean | undefined {
    return this.#last?.endpoint === endpoint ? this.#last.known : undefined;
  }

  /**
   * Resolves to false also where the member gives no answer in time, or one without a version. A renewal does not wait longer
   * because another one with more time has asked.
   * @throws {EtcdConnectionFailed} where no connection could be made, so that a write could not be sent either
   * @throws the reason of what ends the wait
   */
  async of(endpoint: Endpoint, { ask, patience, ending }: Asking): Promise<boolean> {
    if (this.#last?.endpoint !== endpoint) this.#last = this.#question(endpoint, ask);
    const { known, answer, askedAt } = this.#last;
    if (known !== undefined) return known;
    const scope = new Scope(ending).abortAt(new Deadline(askedAt + patience * 1000), () => LATE, { ref: false });
    try {
      return await orAborted(answer, scope);
    } catch (error) {
      if (error === LATE) return false;
      throw error;
    } finally {
      scope.dispose();
    }
  }

  #question(endpoint: Endpoint, ask: () => Promise<boolean>): Question {
    const forget = (): void => {
      if (this.#last === question) this.#last = undefined;
    };
    const answer = ask().then(
      (known) => {
        question.known = known;
        return known;
      },
      (error: unknown) => {
        if (error instanceof EtcdUnusableAnswer || error instanceof EtcdInsufficientPermissions) {
          question.known = false;
          return false;
        }
        forget();
        if (!(error instanceof EtcdException) || isUnsent(error)) throw error;
        return false;
      },
    );
    answer.catch(() => {}); // whoever asked may have gone on
    const question: Question = { endpoint, askedAt: now(), answer, known: undefined };
    return question;
  }
}

const isUnsent = (error: EtcdException): boolean => error instanceof EtcdConnectionFailed && !error.outcomeUnknown;
