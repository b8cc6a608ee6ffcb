import { checkSecondsOrNone, show } from '../checks.ts';
import { type AttemptLimits, limitOf } from '../recipe/attempt.ts';
import { parseValue } from '../recipe/entry-value.ts';
import { checkBooleans, checkMargin, checkName, checkSignal, checkTtl } from '../recipe/option-checks.ts';

export interface LockOptions {
  /** Identity of this contender: what its key carries, at most 250 bytes. Default: a fresh uuid. One lock is used by one identity at a time. */
  readonly uuid?: string | undefined;
  /** Seconds by which the clocks of etcd's members may differ. A hold ends this long before its TTL. Default max(TTL/10, 0.25). */
  readonly margin?: number | undefined;
}

export interface AcquireOptions {
  /** Wait for the lock. Default true. With false, `acquire` resolves to false if the lock is taken, **and the entry stays in the queue**. */
  readonly blocking?: boolean | undefined;
  /** Seconds until the key expires unless renewed, an integer ≥ 1; null: never. Default 3600. */
  readonly lockTtl?: number | null | undefined;
  /** Seconds for the whole call; 0: no limit. Default 0. */
  readonly timeout?: number | undefined;
  /** Cancels the call, which rejects with the signal's reason and removes the entry. */
  readonly signal?: AbortSignal | undefined;
  /** Renew every TTL/3, while waiting and while holding; `lock.signal` aborts when that fails. Default false. */
  readonly keepAlive?: boolean | undefined;
}

export interface CheckedAcquire extends AttemptLimits {
  readonly lockTtl: number | null;
  readonly keepAlive: boolean;
}

/** On etcd v2 the request line of a removal has the uuid and the name: see `LONGEST_NAME` in v2/paths.ts. */
const LONGEST_UUID = 250;

/** @throws {TypeError | RangeError} with the value in the message */
export function checkLockOptions({ uuid, margin }: LockOptions): void {
  if (uuid !== undefined) checkUuid(uuid);
  if (margin !== undefined) checkSecondsOrNone('margin', margin);
}

/** @throws {TypeError | RangeError} with the value in the message */
export function checkUuid(uuid: unknown): asserts uuid is string {
  checkName('uuid', uuid, LONGEST_UUID);
  if (parseValue(uuid).uuid !== uuid)
    throw new RangeError(`uuid must not look like a shared value or one with an identity, got ${show(uuid)}`);
}

/** @throws {TypeError | RangeError} with the value in the message */
export function checkAcquire(options: AcquireOptions, margin: number | undefined): CheckedAcquire {
  const { blocking = true, lockTtl = 3600, timeout = 0, signal, keepAlive = false } = options;
  if (lockTtl !== null) checkTtl('lockTtl', lockTtl, ' or null');
  checkSecondsOrNone('timeout', timeout);
  checkBooleans({ blocking, keepAlive });
  checkSignal(signal);
  if (keepAlive && lockTtl === null) throw new RangeError('keepAlive needs a lockTtl to renew, got null');
  if (lockTtl !== null) checkMargin('lockTtl', lockTtl, margin);
  return { blocking, timeout, deadline: limitOf(timeout), signal, lockTtl, keepAlive };
}
