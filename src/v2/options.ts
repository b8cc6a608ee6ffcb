import { show } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { checkHttpOptions, HTTP_OPTIONS, type HttpOptions, type HttpSettings } from '../http/options.ts';
import { checkKey, DEFAULT_LOCK_PREFIX } from './paths.ts';

/** Options of a {@link V2Client}: how to reach the cluster. */
export interface V2ClientOptions extends HttpOptions {
  /** Directory of the lock queues. Default `/_locks`, as in python-etcd. */
  readonly lockPrefix?: string;
  /** Path prefix of etcd's v2 API. Default `/v2`. */
  readonly versionPrefix?: string;
}

export const V2_OPTIONS = {
  ...HTTP_OPTIONS,
  lockPrefix: true,
  versionPrefix: true,
} satisfies OptionNames<V2ClientOptions>;

export interface ClientSettings extends HttpSettings {
  readonly lockPrefix: string;
}

/**
 * Checks the options and fills in the defaults.
 * @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its value, but never a password
 */
export function checkOptions(options: V2ClientOptions): ClientSettings {
  checkOptionNames(options, V2_OPTIONS);
  const { lockPrefix = DEFAULT_LOCK_PREFIX, versionPrefix = '/v2' } = options;
  checkKey('lockPrefix', lockPrefix);
  checkKey('versionPrefix', versionPrefix);
  if (!/^[\w.~/-]+$/.test(versionPrefix))
    throw new RangeError(`versionPrefix must be a plain path such as "/v2", got ${show(versionPrefix)}`);
  return { ...checkHttpOptions(options, versionPrefix), lockPrefix };
}
