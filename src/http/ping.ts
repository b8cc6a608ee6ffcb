import { Scope } from '../base/cancellation.ts';
import { checkSeconds } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { Deadline, now } from '../base/time.ts';
import type { Endpoint } from './endpoint.ts';
import { noAnswer } from './failover/failures.ts';

/** Options of {@link EtcdClient.ping}. */
export interface PingOptions {
  /** Seconds to wait for the members, which are asked at the same time. Default 5. */
  readonly timeout?: number;
}

const OPTIONS = { timeout: true } satisfies OptionNames<PingOptions>;

/**
 * Returns the seconds that a ping may take.
 * @throws {TypeError | RangeError} for an unknown option, or a timeout that is not a number of seconds > 0
 * @internal
 */
export function pingTimeout(options: PingOptions): number {
  checkOptionNames(options, OPTIONS);
  const { timeout = 5 } = options;
  checkSeconds('timeout', timeout);
  return timeout;
}

/** How one member answered a ping. */
export interface MemberHealth {
  /** URL of the member. A host name with several addresses has a result for each of them, with the same URL. */
  readonly url: string;
  /** The API that was asked. With `api: 'both'` each member has two results. */
  readonly api: 'v2' | 'v3';
  /** Whether the member answered in time, by this API, that it is healthy: it knows a leader, and on v3 reports no alarm. */
  readonly ok: boolean;
  /** Seconds until it answered, if it is healthy. */
  readonly latency?: number;
  /** Why it is not healthy. */
  readonly error?: Error;
}

/**
 * Asks each member once, all at the same time.
 * @param ask rejects if the member is not healthy
 * @param ending ends the requests when it aborts
 * @returns the results, in the order of the URLs
 * @throws the reason of `ending` if that aborts
 * @internal
 */
export async function pingAll(
  endpoints: readonly Endpoint[],
  ask: (endpoint: Endpoint, ending: Scope) => Promise<void>,
  { api, timeout, ending }: { readonly api: 'v2' | 'v3'; readonly timeout: number; readonly ending: Scope },
): Promise<readonly MemberHealth[]> {
  const within = new Scope(ending).abortAt(Deadline.after(timeout), () => noAnswer(timeout));
  const pingOne = async (endpoint: Endpoint): Promise<MemberHealth> => {
    const { url } = endpoint;
    const sentAt = now();
    try {
      await ask(endpoint, within);
      return { url, api, ok: true, latency: (now() - sentAt) / 1000 };
    } catch (error) {
      ending.throwIfAborted();
      return { url, api, ok: false, error: error as Error };
    }
  };
  try {
    const results = await Promise.all(endpoints.map(pingOne));
    return results.sort((one, other) => (one.url < other.url ? -1 : 1));
  } finally {
    within.dispose();
  }
}
