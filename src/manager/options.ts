import { checkBoolean, checkSecondsOrNone, show } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { type AttemptLimits, deadlineUnlessZero } from '../recipe/attempt.ts';
import type { CandidateValue, LockMode } from '../recipe/entries/entry-value.ts';
import { checkMargin, checkName, checkSignal, checkTtl, LONGEST_TTL } from '../recipe/option-checks.ts';
import { checkLabel, DEFAULT_LABEL } from './label.ts';

/** What both a manager and a single request can set. */
interface Common {
  /**
   * Lease in seconds, an integer ≥ 1: how long a crashed process blocks others. Renewed every TTL/3, while waiting and while
   * holding. Default 30.
   */
  readonly ttl?: number | undefined;
  /** Seconds to wait for the lock; 0: no limit. Default 0. */
  readonly timeout?: number | undefined;
  /**
   * A name that **only one live process can have**, at most 200 bytes, such as the name of a pod in a StatefulSet. A restarted
   * process evicts the entries of its crashed predecessor instead of waiting for them to expire, including one that
   * `holdAtLeast` keeps. Default: none.
   */
  readonly identity?: string | undefined;
  /**
   * Minimum seconds for which the entry stays in the queue, counted from when the lock was acquired, even if the callback ends or throws
   * earlier. Until then no other client gets an exclusive lock, unless the lock is lost, or etcd cannot be reached at the release.
   * The release then sets the TTL of the entry to the rest of the time, rounded up to whole seconds, and does not wait: the
   * entry expires even if this process ends. Use it for a short job that several hosts start at about the same time; for a job
   * with a schedule, see `LockManager.once`. A process that crashes in the callback blocks others for its `ttl` only. Default 0.
   * @example
   * await locks.request('nightly', { ifAvailable: true, holdAtLeast: 60 }, (held) => held && report());
   */
  readonly holdAtLeast?: number | undefined;
  /**
   * Maximum seconds of a hold, counted from when the lock was acquired; 0: no limit. After that, the lock counts as lost:
   * `held.signal` aborts with an `EtcdLockLost`, and renewals stop. The key expires, or is removed when the callback
   * ends.
   * Default 0.
   */
  readonly maxHold?: number | undefined;
  /**
   * Who makes the request, for people: shown by `query()`, by the errors of other waiters, and by the command line. At most 100
   * bytes; `''`: none. Unlike `identity`, it need not be unique and never evicts an entry. Everyone who can read the lock's
   * queue can read it. Default `hostname:pid`.
   */
  readonly label?: string | undefined;
}

/** Options of a manager: defaults for its requests, and the margin of its leases. */
export interface LockManagerOptions extends Common {
  /**
   * Seconds by which the clocks of etcd's members may differ. A lease counts as lost this long before its TTL has passed.
   * Default max(TTL/10, 0.25).
   */
  readonly margin?: number | undefined;
}

const COMMON_OPTIONS = {
  ttl: true,
  timeout: true,
  identity: true,
  label: true,
  holdAtLeast: true,
  maxHold: true,
} satisfies OptionNames<Common>;

const MANAGER_OPTIONS = { ...COMMON_OPTIONS, margin: true } satisfies OptionNames<LockManagerOptions>;

/** Options of one request. Those that a manager also has default to the manager's. */
export interface HoldOptions extends Common {
  /**
   * `'exclusive'`: hold the lock alone, or with a `limit` together with others with that limit. `'shared'`: hold it
   * together with other shared holders. Default `'exclusive'`.
   */
  readonly mode?: LockMode | undefined;
  /**
   * How many may hold the lock at the same time, an integer from 1 to 1000: the lock is then a semaphore. All requests for this lock that
   * have a `limit` must have the same. Requests without one, python-etcd's and Go's locks included, never hold it together with them.
   * Not with `mode: 'shared'`.
   * Default: none.
   * @example
   * await locks.request('encoder', { limit: 3 }, () => encode(video));
   */
  readonly limit?: number | undefined;
  /** Whether to get null at once if the lock is taken, instead of waiting. Leaves no key behind. Default false. */
  readonly ifAvailable?: boolean | undefined;
  /** Cancels the wait: the call rejects with the signal's reason. Has no effect on a hold. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of one request with a callback. */
export interface RequestOptions extends HoldOptions {
  /**
   * Whether a request inside the callback of another request for the same lock runs under the outer hold, instead of
   * waiting for its end. Then the outer hold's `ttl`, `holdAtLeast` and `maxHold` apply. Default false.
   */
  readonly reentrant?: boolean | undefined;
}

const REQUEST_OPTIONS = {
  ...COMMON_OPTIONS,
  mode: true,
  limit: true,
  ifAvailable: true,
  reentrant: true,
  signal: true,
} satisfies OptionNames<RequestOptions>;

/** A checked request: its limits, and its entry's value without the uuid. */
export interface CheckedRequest extends AttemptLimits, Omit<CandidateValue, 'uuid'> {
  readonly ttl: number;
  readonly margin: number | undefined;
  readonly reentrant: boolean;
  readonly holdAtLeast: number;
  readonly maxHold: number;
}

/** Maximum of `limit`. A client that waits reads the entries of all holders. */
const HIGHEST_LIMIT = 1000;

/** Maximum bytes of an identity. An entry's value also has a mode or limit, a uuid, a label and a published text. */
const LONGEST_IDENTITY = 200;

/**
 * Checks the options of a manager.
 * @throws {TypeError | RangeError} if an option is unknown or invalid; the message contains its name or value
 */
export function checkManagerOptions(options: LockManagerOptions): void {
  checkOptionNames(options, MANAGER_OPTIONS);
  checkCommon({}, options);
}

/**
 * Checks the options of a request and adds the defaults. The timeout begins now.
 * @throws {TypeError | RangeError} if an option is unknown or invalid; the message contains its name or value
 */
export function checkRequest(options: RequestOptions, defaults: LockManagerOptions): CheckedRequest {
  checkOptionNames(options, REQUEST_OPTIONS);
  const { mode = 'exclusive', limit, ifAvailable = false, reentrant = false, signal } = options;
  if (mode !== 'exclusive' && mode !== 'shared')
    throw new RangeError(`mode must be 'exclusive' or 'shared', got ${show(mode)}`);
  if (limit !== undefined) checkLimit(limit, mode);
  checkBoolean('ifAvailable', ifAvailable);
  checkBoolean('reentrant', reentrant);
  checkSignal(signal);
  return { mode, limit, blocking: !ifAvailable, reentrant, signal, ...checkCommon(options, defaults) };
}

function checkCommon(
  options: Common,
  defaults: LockManagerOptions,
): Omit<CheckedRequest, 'mode' | 'limit' | 'blocking' | 'reentrant' | 'signal'> {
  // Default values in the pattern, not `??`: they replace only undefined, so the checks below refuse null.
  const { ttl: usualTtl = 30, timeout: usualTimeout = 0, label: usualLabel = DEFAULT_LABEL, margin } = defaults;
  const { holdAtLeast: usualLeast = 0, maxHold: usualMost = 0 } = defaults;
  const { ttl = usualTtl, timeout = usualTimeout, identity = defaults.identity, label = usualLabel } = options;
  const { holdAtLeast = usualLeast, maxHold = usualMost } = options;
  checkTtl('ttl', ttl);
  checkSecondsOrNone('timeout', timeout);
  if (margin !== undefined) checkSecondsOrNone('margin', margin);
  checkMargin('ttl', ttl, margin);
  if (identity !== undefined) checkName('identity', identity, LONGEST_IDENTITY);
  checkSecondsOrNone('holdAtLeast', holdAtLeast);
  checkSecondsOrNone('maxHold', maxHold);
  checkHoldAtLeast(holdAtLeast, maxHold);
  return {
    ttl,
    timeout,
    deadline: deadlineUnlessZero(timeout),
    identity,
    label: checkLabel(label),
    margin,
    holdAtLeast,
    maxHold,
  };
}

/** @throws {RangeError} if the limit is invalid, or cannot be used in this mode; the message shows it */
function checkLimit(limit: number, mode: LockMode): void {
  if (!(Number.isSafeInteger(limit) && limit >= 1 && limit <= HIGHEST_LIMIT))
    throw new RangeError(`limit must be an integer from 1 to ${HIGHEST_LIMIT}, got ${show(limit)}`);
  if (mode === 'shared') throw new RangeError(`limit must not be set with mode 'shared', got ${show(limit)}`);
}

/** @throws {RangeError} if `holdAtLeast` is too long; the message shows it */
function checkHoldAtLeast(least: number, most: number): void {
  // The release sets the TTL of the entry to the rest of `holdAtLeast`, so the maximum of a TTL applies.
  if (least > LONGEST_TTL) throw new RangeError(`holdAtLeast must be at most ${LONGEST_TTL}, got ${show(least)}`);
  if (most > 0 && least > most) throw new RangeError(`holdAtLeast must be at most maxHold ${most}, got ${show(least)}`);
}
