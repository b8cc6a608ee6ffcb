import { checkWellFormed, show } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { checkHttpOptions, HTTP_OPTIONS, type HttpOptions, type HttpSettings } from '../http/options.ts';

/** Options of a {@link V3Client}: how to reach the cluster. */
export interface V3ClientOptions extends HttpOptions {
  /** Prefix of the keys of all locks. Default `/_locks`. If empty, keys begin with the lock name, as other programs name them. */
  readonly lockPrefix?: string;
}

export const V3_OPTIONS = { ...HTTP_OPTIONS, lockPrefix: true } satisfies OptionNames<V3ClientOptions>;

export interface V3Settings extends HttpSettings {
  readonly lockPrefix: string;
}

/**
 * Checks the options and fills in the defaults.
 * @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its name or value, but never a password
 */
export function checkV3Options(options: V3ClientOptions): V3Settings {
  checkOptionNames(options, V3_OPTIONS);
  const { lockPrefix = '/_locks' } = options;
  if (typeof lockPrefix !== 'string') throw new TypeError(`lockPrefix must be a string, got ${show(lockPrefix)}`);
  checkWellFormed('lockPrefix', lockPrefix);
  // The keys would have an empty part, which nobody means: "/locks" and "x" make "/locks/x".
  if (lockPrefix.endsWith('/')) throw new RangeError(`lockPrefix must not end with "/", got ${show(lockPrefix)}`);
  // The gateway takes a token instead of basic authentication.
  return { ...checkHttpOptions(options, ''), authorization: undefined, lockPrefix };
}
