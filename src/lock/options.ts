import { checkLength, checkSecondsOrNone, show } from '../keys/checks.ts';
import { defaultMargin } from './lease.ts';

export interface LockOptions {
  /** Identity of this contender: what its key carries, at most 250 bytes. Default: a fresh uuid. One lock is used by one identity at a time. */
  readonly uuid?: string;
  /** Seconds the clocks of etcd's members may differ by; the hold ends that much before the TTL. Default max(TTL/10, 0.25). */
  readonly margin?: number;
}

export interface AcquireOptions {
  /** Wait for the lock. Default true. With false a taken lock resolves to false **and the place in the queue is kept**. */
  readonly blocking?: boolean;
  /** Seconds until the key expires unless renewed, an integer ≥ 1; null: never. Default 3600. */
  readonly lockTtl?: number | null;
  /** Seconds for the whole call; 0: no limit. Default 0. */
  readonly timeout?: number;
  /** Ends the call: it rejects with the signal's reason and gives the place up. */
  readonly signal?: AbortSignal;
  /** Renew every TTL/3 while waiting and while held; `lock.signal` aborts when that fails. Default false. */
  readonly keepAlive?: boolean;
}

export interface CheckedAcquire {
  readonly blocking: boolean;
  readonly lockTtl: number | null;
  /** Seconds; 0: no limit. */
  readonly timeout: number;
  readonly signal: AbortSignal | undefined;
  readonly keepAlive: boolean;
}

const LONGEST_TTL = 2 ** 31;
/** A removal has it in one line with the name: see `LONGEST_NAME` in keys/paths.ts. */
const LONGEST_UUID = 250;

/** @throws {TypeError | RangeError} with the value in the message */
export function checkLockOptions({ uuid, margin }: LockOptions): void {
  if (uuid !== undefined) checkUuid(uuid);
  if (margin !== undefined) checkSecondsOrNone('margin', margin);
}

/** @throws {TypeError | RangeError} with the value in the message */
export function checkUuid(uuid: unknown): asserts uuid is string {
  if (typeof uuid !== 'string') throw new TypeError(`uuid must be a string, got ${show(uuid)}`);
  if (uuid === '') throw new RangeError(`uuid must not be empty, got ${show(uuid)}`);
  checkLength('uuid', uuid, LONGEST_UUID);
}

/** @throws {TypeError | RangeError} with the value in the message */
export function checkAcquire(options: AcquireOptions, margin: number | undefined): CheckedAcquire {
  const { blocking = true, lockTtl = 3600, timeout = 0, signal, keepAlive = false } = options;
  if (lockTtl !== null && !(Number.isInteger(lockTtl) && lockTtl >= 1 && lockTtl <= LONGEST_TTL))
    throw new RangeError(`lockTtl must be an integer from 1 to ${LONGEST_TTL} or null, got ${show(lockTtl)}`);
  checkSecondsOrNone('timeout', timeout);
  for (const [name, value] of Object.entries({ blocking, keepAlive }))
    if (typeof value !== 'boolean') throw new TypeError(`${name} must be a boolean, got ${show(value)}`);
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new TypeError(`signal must be an AbortSignal, got ${show(signal)}`);
  if (keepAlive && lockTtl === null) throw new RangeError('keepAlive needs a lockTtl to renew, got null');
  if (lockTtl !== null && (margin ?? defaultMargin(lockTtl)) >= lockTtl)
    throw new RangeError(`margin must be less than lockTtl ${lockTtl}, got ${show(margin)}`);
  return { blocking, lockTtl, timeout, signal, keepAlive };
}
