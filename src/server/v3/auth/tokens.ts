import { randomInt } from 'node:crypto';
import type { Clock } from '../../../base/time.ts';

/** Milliseconds from the last use of a token until it expires, as in etcd by default. */
const TTL = 300_000;

/** Maximum number of tokens; the one that was used longest ago is given up for a new one. */
const MOST = 10_000;

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The simple tokens of etcd: each stands for a user, and expires when it is not used. */
export class Tokens {
  readonly #clock: Clock;
  /** The one that was used longest ago first. */
  readonly #byText = new Map<string, { readonly user: string; readonly usedAt: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns a new token for a user. @param revision the store's, which etcd makes part of a token */
  assign(user: string, revision: bigint): string {
    const random = Array.from({ length: 16 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
    const token = `${random}.${revision}`;
    const [oldest] = this.#byText.keys();
    if (this.#byText.size >= MOST && oldest !== undefined) this.#byText.delete(oldest);
    this.#byText.set(token, { user, usedAt: this.#clock.now() });
    return token;
  }

  /** Returns the user of a token, and notes that the token is in use. Returns undefined if it is unknown or has expired. */
  use(token: string): string | undefined {
    const known = this.#byText.get(token);
    if (!known) return undefined;
    this.#byText.delete(token);
    const now = this.#clock.now();
    if (known.usedAt + TTL <= now) return undefined;
    this.#byText.set(token, { user: known.user, usedAt: now });
    return known.user;
  }

  /** Makes the tokens of a user, or of all users, invalid. */
  revoke(user?: string): void {
    for (const [token, known] of this.#byText)
      if (user === undefined || known.user === user) this.#byText.delete(token);
  }
}
