import { show } from '../checks.ts';
import { EtcdStaleToken } from '../errors.ts';

/**
 * Raises the highest token known for a resource to this one, unless that is lower, and answers with the highest then. It has
 * to do both at once, and in the transaction of the write that it is to guard.
 */
export type Raise = (resource: string, token: bigint) => bigint | Promise<bigint>;

/**
 * For the side of the resource: lets a write through only if its fencing token is not lower than the highest seen, so that
 * a holder that was stopped, lost its lock and goes on without knowing does no harm (Kleppmann, "How to do distributed locking").
 *
 * Tokens of two etcd clusters cannot be compared: after a change of the cluster, forget the highest.
 */
export class Fence {
  readonly #raise: Raise;

  /** @param raise where the highest tokens are kept; default: in this object, as long as it lives */
  constructor(raise: Raise = inMemory()) {
    if (typeof raise !== 'function') throw new TypeError(`raise must be a function, got ${show(raise)}`);
    this.#raise = raise;
  }

  /**
   * Resolves when the token is not lower than the highest seen for the resource, and remembers it.
   * @throws {EtcdStaleToken} when it is lower
   * @throws {TypeError} when it, or what `raise` resolves to, is no bigint
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
