import { checkBoolean, checkSecondsOrNone, show } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { type AttemptLimits, deadlineUnlessZero } from '../recipe/attempt.ts';
import { parseValue } from '../recipe/entries/entry-value.ts';
import { checkMargin, checkName, checkSignal, checkTtl } from '../recipe/option-checks.ts';

/** Options of a `Lock`. */
export interface LockOptions {
  /**
   * Value of the lock's entry, at most 250 bytes. If an entry with this uuid exists, `acquire` takes it over, as after
   * {@link Lock.setUuid}. No two lock objects may use the same uuid at a time. Default: a new uuid.
   */
  readonly uuid?: string | undefined;
  /**
   * Seconds by which the clocks of etcd's members may differ. A hold ends this long before its TTL has passed.
   * Default max(TTL/10, 0.25).
   */
  readonly margin?: number | undefined;
}

const LOCK_OPTIONS = { uuid: true, margin: true } satisfies OptionNames<LockOptions>;

/** Options of one `Lock.acquire()`. */
export interface AcquireOptions {
  /**
   * Whether to wait for the lock. Default true. With false, `acquire` resolves to false if another entry holds the lock, **and
   * the own entry stays in the queue**.
   */
  readonly blocking?: boolean | undefined;
  /** Seconds until the key expires unless renewed, an integer ≥ 1; null: never. Default 3600. */
  readonly lockTtl?: number | null | undefined;
  /** Seconds for the whole call; 0: no limit. Default 0. */
  readonly timeout?: number | undefined;
  /** Cancels the call, which rejects with the signal's reason and removes the entry. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Whether to renew the entry every TTL/3, while waiting and while holding. `lock.signal` aborts when a renewal shows that the
   * lock is lost, or when none succeeds in time. Default false.
   */
  readonly keepAlive?: boolean | undefined;
}

const ACQUIRE_OPTIONS = {
  blocking: true,
  lockTtl: true,
  timeout: true,
  signal: true,
  keepAlive: true,
} satisfies OptionNames<AcquireOptions>;

export interface CheckedAcquire extends AttemptLimits {
  readonly lockTtl: number | null;
  readonly keepAlive: boolean;
}

/**
 * Maximum bytes of a uuid. On etcd v2, the request line of a removal contains both the uuid and the name; see `MAX_NAME_LENGTH` in
 * v2/paths.ts.
 */
const LONGEST_UUID = 250;

/** @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its name or value */
export function checkLockOptions(options: LockOptions): void {
  checkOptionNames(options, LOCK_OPTIONS);
  const { uuid, margin } = options;
  if (uuid !== undefined) checkUuid(uuid);
  if (margin !== undefined) checkSecondsOrNone('margin', margin);
}

/**
 * @throws {TypeError | RangeError} unless the uuid is a well-formed string of 1 to {@link LONGEST_UUID} bytes, without a mode, a limit
 * or an identity before it; the message shows the value
 */
export function checkUuid(uuid: unknown): asserts uuid is string {
  checkName('uuid', uuid, LONGEST_UUID);
  const { mode, limit, identity } = parseValue(uuid);
  if (mode === 'shared' || limit !== undefined || identity !== undefined)
    throw new RangeError(
      `uuid must not start with "shared:" or "limit:<limit>:", or have the form "id:<identity>:<uuid>", got ${show(uuid)}`,
    );
}

/**
 * Returns the options with their defaults.
 * @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its name or value
 */
export function checkAcquire(options: AcquireOptions, margin: number | undefined): CheckedAcquire {
  checkOptionNames(options, ACQUIRE_OPTIONS);
  const { blocking = true, lockTtl = 3600, timeout = 0, signal, keepAlive = false } = options;
  if (lockTtl !== null) checkTtl('lockTtl', lockTtl, ' or null');
  checkSecondsOrNone('timeout', timeout);
  checkBoolean('blocking', blocking);
  checkBoolean('keepAlive', keepAlive);
  checkSignal(signal);
  if (keepAlive && lockTtl === null)
    throw new RangeError('keepAlive requires a number of seconds as lockTtl, got null');
  if (lockTtl !== null) checkMargin('lockTtl', lockTtl, margin);
  return { blocking, timeout, deadline: deadlineUnlessZero(timeout), signal, lockTtl, keepAlive };
}
