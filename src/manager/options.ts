import { checkSecondsOrNone, show } from '../checks.ts';
import type { LockMode } from '../recipe/entry-value.ts';
import { checkBooleans, checkMargin, checkName, checkSignal, checkTtl } from '../recipe/option-checks.ts';

/** What both a manager and a single request can set. */
interface Common {
  /** Seconds until others go on when this process has died, an integer ≥ 1. Renewed every TTL/3, while waiting and while held. Default 30. */
  readonly ttl?: number | undefined;
  /** Seconds for the wait; 0: no limit. Default 0. */
  readonly timeout?: number | undefined;
  /**
   * A name that **only one live process can have**, at most 200 bytes: a pod of a StatefulSet, a unit. A restarted process then
   * removes what its dead predecessor left in the queue instead of waiting for its TTL. Default: none.
   */
  readonly identity?: string | undefined;
}

export interface LockManagerOptions extends Common {
  /** Seconds the clocks of etcd's members may differ by; a hold ends that much before the TTL. Default max(TTL/10, 0.25). */
  readonly margin?: number | undefined;
}

/** How to ask for a lock. What is absent is as the manager was told. */
export interface HoldOptions extends Common {
  /** Whether to hold it alone or beside others that share it. Default 'exclusive'. */
  readonly mode?: LockMode | undefined;
  /** Do not wait: where the lock is taken, the answer is null. No key is left behind. Default false. */
  readonly ifAvailable?: boolean | undefined;
  /** Ends the wait, with the signal's reason; a hold is not ended by it. */
  readonly signal?: AbortSignal | undefined;
}

export interface RequestOptions extends HoldOptions {
  /** Inside the callback of a request for the same lock, run under that one's hold instead of waiting for it. Default false. */
  readonly reentrant?: boolean | undefined;
}

export interface CheckedRequest {
  readonly mode: LockMode;
  readonly ifAvailable: boolean;
  readonly signal: AbortSignal | undefined;
  readonly ttl: number;
  readonly timeout: number;
  readonly margin: number | undefined;
  readonly identity: string | undefined;
  readonly reentrant: boolean;
}

/** Together with `shared:`, `id:` and the uuid it has room in what an entry may carry. */
const LONGEST_IDENTITY = 200;

/** @throws {TypeError | RangeError} with the value in the message */
export function checkManagerOptions(options: LockManagerOptions): void {
  checkObject(options);
  checkCommon({}, options);
}

/** @throws {TypeError | RangeError} with the value in the message */
export function checkRequest(options: RequestOptions, defaults: LockManagerOptions): CheckedRequest {
  checkObject(options);
  const { mode = 'exclusive', ifAvailable = false, reentrant = false, signal } = options;
  if (mode !== 'exclusive' && mode !== 'shared')
    throw new RangeError(`mode must be 'exclusive' or 'shared', got ${show(mode)}`);
  checkBooleans({ ifAvailable, reentrant });
  if ('steal' in options)
    throw new TypeError(`steal is not offered: nobody can be made to stop, got ${show(options.steal)}`);
  checkSignal(signal);
  return { mode, ifAvailable, reentrant, signal, ...checkCommon(options, defaults) };
}

function checkObject(options: unknown): asserts options is object {
  if (typeof options !== 'object' || options === null)
    throw new TypeError(`options must be an object, got ${show(options)}`);
}

function checkCommon(
  options: Common,
  defaults: LockManagerOptions,
): Pick<CheckedRequest, 'ttl' | 'timeout' | 'identity' | 'margin'> {
  // Not `??`: a null is refused, not taken for the default.
  const { ttl: usualTtl = 30, timeout: usualTimeout = 0, margin } = defaults;
  const { ttl = usualTtl, timeout = usualTimeout, identity = defaults.identity } = options;
  checkTtl('ttl', ttl);
  checkSecondsOrNone('timeout', timeout);
  if (margin !== undefined) checkSecondsOrNone('margin', margin);
  checkMargin('ttl', ttl, margin);
  if (identity !== undefined) checkName('identity', identity, LONGEST_IDENTITY);
  return { ttl, timeout, identity, margin };
}
