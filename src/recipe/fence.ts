import { show } from '../checks.ts';
import { EtcdStaleToken } from '../errors.ts';

/**
 * Stores `token` as the highest of a resource if it is higher than the stored one, and returns the highest. Must do both
 * atomically, in the transaction of the write that it guards.
 */
export type Raise = (resource: string, token: bigint) => bigint | Promise<bigint>;

/**
 * Protects a resource: accepts a write only if its fencing token is not lower than the highest seen. A holder that was
 * suspended and lost its lock without noticing then does no harm (Kleppmann, "How to do distributed locking").
 *
 * Tokens of two etcd clusters cannot be compared: when the cluster changes, forget the highest.
 */
export class Fence {
  readonly #raise: Raise;

  /** @param raise stores the highest tokens; default: in the memory of this object */
  constructor(raise: Raise = inMemory()) {
    if (typeof raise !== 'function') throw new TypeError(`raise must be a function, got ${show(raise)}`);
    this.#raise = raise;
  }

  /**
   * Resolves if the token is not lower than the highest seen for the resource, and stores it.
   * @throws {EtcdStaleToken} if the token is lower
   * @throws {TypeError} if the token, or what `raise` resolves to, is not a bigint
   */
  async accept(resource: string, token: bigint): Promise<void> {
    if (typeof token !== 'bigint') throw new TypeError(`token must be a bigint, got ${show(token)}`);
    const highest = await this.#raise(resource, token);
    if (typeof highest !== 'bigint') throw new TypeError(`raise must resolve to a bigint, got ${show(highest)}`);
    if (token >= highest) return;
    throw new EtcdStaleToken(`${resource} was written with token ${highest} already, got ${token}`, { token, highest });
  }
}

function inMemory(): Raise {
  const highest = new Map<string, bigint>();
  return (resource, token) => {
    const seen = highest.get(resource) ?? token;
    highest.set(resource, token > seen ? token : seen);
    return token > seen ? token : seen;
  };
}
