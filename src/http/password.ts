import { detached } from '../base/async-context.ts';
import { ignore } from '../base/cancellation.ts';
import { errorText } from '../base/error-text.ts';
import { PasswordRefused } from '../base/password-refused.ts';
import { EtcdConnectionFailed, EtcdInsufficientPermissions } from '../errors.ts';
import type { UserOptions } from './checks/credentials.ts';
import { type Limits, within } from './timeout.ts';

type Ask = Extract<UserOptions['password'], (...args: never[]) => unknown>;

/** The password of a user, which may change: see {@link UserOptions.password}. Private, so that no debugger or logger prints it. */
export class Password {
  readonly #ask: Ask | undefined;
  #known: string | undefined;
  #underWay: Promise<string> | undefined;

  constructor(given: NonNullable<UserOptions['password']>) {
    if (typeof given === 'function') this.#ask = given;
    else this.#known = given;
  }

  /**
   * Calls `attempt` with the password. Calls it again if etcd refuses that password, and the function gives another one.
   * @param limits how long to wait for the function
   * @throws {PasswordRefused} if etcd refuses the password that the function gives, or if the function throws
   * @throws {EtcdConnectionFailed} if the function does not answer in time; a later answer is still used
   */
  async use<T>(limits: Limits, attempt: (password: string) => Promise<T>): Promise<T> {
    const first = this.#known ?? (await this.#next(limits));
    try {
      return await attempt(first);
    } catch (error) {
      if (!this.#ask || !(error instanceof EtcdInsufficientPermissions)) throw error;
      // Another call may have been refused before, and know a newer one.
      const next = this.#known === first ? await this.#next(limits) : (this.#known ?? first);
      if (next === first) throw mayChange(error);
      return await attempt(next).catch((again: unknown) => {
        throw again instanceof EtcdInsufficientPermissions ? mayChange(again) : again;
      });
    }
  }

  /** Asks the function, unless another call is asking it. */
  #next(limits: Limits): Promise<string> {
    const answer = this.#underWay ?? detached(() => this.#start());
    return within(answer, limits, () => new EtcdConnectionFailed(SILENT));
  }

  #start(): Promise<string> {
    const answer = this.#answer().finally(() => {
      this.#underWay = undefined;
    });
    answer.catch(ignore);
    this.#underWay = answer;
    return answer;
  }

  async #answer(): Promise<string> {
    let answer: unknown;
    try {
      answer = await this.#ask?.();
    } catch (error) {
      throw new PasswordRefused(`the function for the password failed: ${errorText(error)}`, { cause: error });
    }
    if (typeof answer !== 'string')
      throw new PasswordRefused(`the function for the password must return a string, got ${typeof answer}`);
    this.#known = answer;
    return answer;
  }
}

const SILENT = 'the function for the password has not answered in time';

const mayChange = ({ message, errorCode, index, httpStatus, cause }: EtcdInsufficientPermissions): PasswordRefused =>
  new PasswordRefused(message, { errorCode, index, httpStatus, cause });
