import { createHmac, randomBytes } from 'node:crypto';
import { atDeadline, Deadline } from '../../../base/time.ts';
import { EtcdInsufficientPermissions } from '../../../errors.ts';
import { Overloaded } from '../../served-keys.ts';

/** Maximum number of logins at a time. Each takes about 0.1 s of processor time in etcd, which checks the password with bcrypt. */
const MOST_AT_A_TIME = 4;
/** Maximum number of logins that wait for their turn, and of seconds that each may wait. */
const MOST_WAITING = 200;
const WAIT_FOR = 10;
/** Maximum number of refusals that are remembered, and the seconds for which each is. */
const MOST_REFUSALS = 1000;
const REFUSE_FOR = 5;

/**
 * Logs users in, a few at a time. Credentials that etcd has not accepted yet may be anyone's, so they have only these turns, and take
 * nothing from the users that are logged in.
 */
export class LogIns {
  /** Of the hashes that stand for credentials: a password is not kept longer than its login takes. */
  readonly #key = randomBytes(32);
  readonly #inProgress = new Map<string, Promise<void>>();
  /** In the order of their ends. */
  readonly #refusals = new Map<string, { readonly error: Error; readonly until: Deadline }>();
  /** Begin the logins that wait, in the order of their arrival. */
  readonly #waiting = new Set<() => void>();
  #running = 0;

  /** Returns a name for credentials that does not reveal them. */
  nameOf(credentials: string): string {
    return createHmac('sha256', this.#key).update(credentials).digest('base64');
  }

  /**
   * Runs a login when it is its turn. Requests with the same credentials share it. After a refusal by etcd, rejects with the same
   * error for some seconds, without a login.
   * @throws what `logIn` throws
   * @throws {Overloaded} if too many logins wait, or if this one has waited for too long
   */
  run(name: string, logIn: () => Promise<void>): Promise<void> {
    const known = this.#inProgress.get(name);
    if (known) return known;
    const running = this.#run(name, logIn).finally(() => this.#inProgress.delete(name));
    this.#inProgress.set(name, running);
    return running;
  }

  async #run(name: string, logIn: () => Promise<void>): Promise<void> {
    const refusal = this.#refusals.get(name);
    if (refusal && !refusal.until.passed) throw refusal.error;
    await this.#turn();
    try {
      await logIn();
    } catch (error) {
      if (error instanceof EtcdInsufficientPermissions) this.#remember(name, error);
      throw error;
    } finally {
      this.#running -= 1;
      for (const begin of this.#waiting) {
        begin();
        break;
      }
    }
  }

  async #turn(): Promise<void> {
    if (this.#running < MOST_AT_A_TIME) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.size >= MOST_WAITING) throw overloaded();
    await new Promise<void>((resolve, reject) => {
      const begin = () => {
        cancel();
        this.#waiting.delete(begin);
        this.#running += 1;
        resolve();
      };
      const giveUp = () => {
        this.#waiting.delete(begin);
        reject(overloaded());
      };
      const cancel = atDeadline(Deadline.after(WAIT_FOR), giveUp, { ref: false });
      this.#waiting.add(begin);
    });
  }

  #remember(name: string, error: Error): void {
    this.#refusals.delete(name);
    this.#refusals.set(name, { error, until: Deadline.after(REFUSE_FOR) });
    for (const [oldest, { until }] of this.#refusals) {
      if (this.#refusals.size <= MOST_REFUSALS && !until.passed) break;
      this.#refusals.delete(oldest);
    }
  }
}

const overloaded = (): Error => new Overloaded('too many users log in: retry later, or use another server');
