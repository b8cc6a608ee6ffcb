import { checkLength, checkWellFormed, show } from '../../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../../base/option-names.ts';
import { checkSignal } from '../../recipe/option-checks.ts';
import { type CheckedRequest, checkRequest, type LockManagerOptions } from '../options.ts';

/** Options of an election. The manager's `margin` applies too, but its `timeout`, `holdAtLeast` and `maxHold` do not. */
export interface ElectionOptions {
  /**
   * What this process publishes while it leads, such as its URL: observers and `leader()` get it. At most 1000 bytes when
   * percent-encoded; `''`: nothing. Everyone who can read the lock's queue can read it. With a value, the name of the election
   * may have at most 300 bytes. Default: nothing.
   */
  readonly value?: string | undefined;
  /**
   * Lease in seconds, an integer ≥ 1: how long a crashed leader blocks the next one. Renewed every TTL/3, while waiting
   * and while leading. Default: the manager's `ttl`, which is 30 by default.
   */
  readonly ttl?: number | undefined;
  /**
   * A name that **only one live process can have**, at most 200 bytes. A restarted process evicts the entries of its crashed
   * predecessor instead of waiting for them to expire. Default: the manager's `identity`, if any.
   */
  readonly identity?: string | undefined;
  /** Who the candidate is, for people. At most 100 bytes; `''`: none. Default: the manager's, `hostname:pid` by default. */
  readonly label?: string | undefined;
}

const ELECTION_OPTIONS = { value: true, ttl: true, identity: true, label: true } satisfies OptionNames<ElectionOptions>;

/** Options of `Election.campaign`. */
export interface CampaignOptions {
  /**
   * Ends the campaign: the loop throws the signal's reason, at once while it waits, or else at the end of the term. Does not end a
   * term. Default: the campaign has no end.
   */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `Election.observe`. */
export interface ObserveOptions {
  /** Ends the observation: the loop throws the signal's reason. Default: the observation has no end. */
  readonly signal?: AbortSignal | undefined;
}

const ITERATION_OPTIONS = { signal: true } satisfies OptionNames<CampaignOptions & ObserveOptions>;

/** Maximum bytes of a percent-encoded value. On etcd v2, the request line of a removal contains the encoded value, encoded again. */
const LONGEST_VALUE = 1000;
/** Maximum bytes of the name of an election with such a value: the same request line contains both, and must be below 4 KiB. */
const LONGEST_NAME = 300;

/** What a process does to become the leader. */
export interface Candidacy {
  readonly name: string;
  readonly value: string | undefined;
  /** The request for the lock, which has no timeout. */
  readonly request: CheckedRequest;
}

/**
 * Checks an election and adds the manager's defaults.
 * @throws {TypeError | RangeError} if an option is unknown or invalid; the message contains its name or value
 */
export function checkElection(name: string, options: ElectionOptions, defaults: LockManagerOptions): Candidacy {
  checkOptionNames(options, ELECTION_OPTIONS);
  const { value: given, ...own } = options;
  const value = checkValue(given);
  if (value !== undefined) checkLength('the name of an election with a value', name, LONGEST_NAME);
  const { ttl, identity, label, margin } = defaults;
  const usual = { ttl, identity, label, ...(margin === undefined ? {} : { margin }) };
  return { name, value, request: { ...checkRequest(own, usual), published: value, outlastsOutages: true } };
}

/**
 * Checks the options of a campaign or an observation. Returns the signal.
 * @throws {TypeError} if an option is unknown or invalid; the message contains its name or value
 */
export function checkIteration(options: CampaignOptions | ObserveOptions): AbortSignal | undefined {
  checkOptionNames(options, ITERATION_OPTIONS);
  checkSignal(options.signal);
  return options.signal;
}

/** Returns the value to publish; undefined for `''`, which means none. */
function checkValue(value: unknown): string | undefined {
  if (value === undefined || value === '') return undefined;
  if (typeof value !== 'string') throw new TypeError(`value must be a string, got ${show(value)}`);
  checkWellFormed('value', value);
  const { length } = encodeURIComponent(value);
  if (length <= LONGEST_VALUE) return value;
  throw new RangeError(
    `value must have at most ${LONGEST_VALUE} bytes when percent-encoded, got ${length}: ${show(value)}`,
  );
}
