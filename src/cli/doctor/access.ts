import { show } from '../../base/checks.ts';
import type { EtcdClientOptions } from '../../client.ts';
import { checkHttpOptions } from '../../http/options.ts';
import { type ClientSettings, checkOptions } from '../../v2/options.ts';
import { V3Client } from '../../v3/client.ts';
import { checkV3Options, type V3ClientOptions } from '../../v3/options.ts';
import { LISTING_TIMEOUT, READ_TIMEOUT } from './limits.ts';

/** How to reach each member. */
export interface Access {
  /** For a `MemberClient`. Credentials are sent as basic authentication, as on etcd v2. */
  readonly settings: ClientSettings;
  /** For a `V3Client`. */
  readonly options: Omit<V3ClientOptions, 'endpoints' | 'srvDomain' | 'srvName' | 'readTimeout'>;
}

/**
 * Checks the options, and returns how to reach each member.
 * @throws {TypeError | RangeError} if an option is unknown or invalid; the message shows its value, but never a password
 */
export function accessBy({ api = 'v2', ...given }: EtcdClientOptions): Access {
  const {
    endpoints: _endpoints,
    srvDomain: _srvDomain,
    srvName: _srvName,
    versionPrefix: _prefix,
    readTimeout: _timeout,
    ...options
  } = given;
  const limited = { ...given, readTimeout: READ_TIMEOUT };
  if (api === 'v2') return { settings: checkOptions(limited), options };
  if (api !== 'v3') throw new RangeError(`api must be "v2" or "v3", got ${show(api)}`);
  const { lockPrefix } = checkV3Options(limited);
  return { settings: { ...checkHttpOptions(limited, '/v2'), lockPrefix }, options };
}

/** Runs `use` with a client for one member's gateway, and closes the client. */
export async function withClient<T>(
  { options }: Access,
  url: string,
  use: (client: V3Client) => Promise<T>,
): Promise<T> {
  const client = new V3Client({ ...options, endpoints: url, readTimeout: LISTING_TIMEOUT });
  try {
    return await use(client);
  } finally {
    await client.close({ timeout: 0 });
  }
}

export const hasCredentials = ({ settings }: Access): boolean => settings.authorization !== undefined;

export function withoutCredentials({ settings, options }: Access): Access {
  const { username: _username, password: _password, ...others } = options;
  return { settings: { ...settings, authorization: undefined }, options: others };
}
