import { show } from '../base/checks.ts';
import { EtcdStaleToken } from '../errors.ts';

/**
 * Compares `token` with the highest token stored for the resource, stores the higher of the two and returns it. Must do all
 * this atomically, in the same transaction as the write that the token protects.
 */
export type Raise = (resource: string, token: bigint) => bigint | Promise<bigint>;

/**
 * Protects a resource: accepts a write only if its fencing token is not lower than the highest seen. So a holder that was
 * suspended and lost its lock without noticing cannot overwrite newer data (Kleppmann, "How to do distributed locking").
 *
 * Use it where the resource is written, not in the holders of the lock. The default protects only the writes that pass through this
 * object; if several processes write, pass `raise`.
 *
 * Tokens of two etcd clusters cannot be compared: when the cluster changes, delete the stored tokens.
 * @example
 * const fence = new Fence();
 * await fence.accept('file1', held.fencingToken);
 */
export class Fence {
  readonly #raise: Raise;

  /**
   * Creates a fence.
   * @param raise compares and stores tokens; by default they are stored in the memory of this object
   * @throws {TypeError} if `raise` is not a function
   */
  constructor(raise: Raise = inMemory()) {
    if (typeof raise !== 'function') throw new TypeError(`raise must be a function, got ${show(raise)}`);
    this.#raise = raise;
  }

  /**
   * Stores the token and resolves, if the token is not lower than the highest seen for the resource.
   * @throws {EtcdStaleToken} if the token is lower
   * @throws {TypeError} if the token, or what `raise` resolves to, is not a bigint
   */
  async accept(resource: string, token: bigint): Promise<void> {
    if (typeof token !== 'bigint') throw new TypeError(`token must be a bigint, got ${show(token)}`);
    const highest = await this.#raise(resource, token);
    if (typeof highest !== 'bigint') throw new TypeError(`raise must resolve to a bigint, got ${show(highest)}`);
    if (token >= highest) return;
    throw new EtcdStaleToken(`${resource} has already accepted token ${highest}, got the lower token ${token}`, {
      token,
      highest,
    });
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
