import { resolveSrv } from 'node:dns/promises';
import { detached } from '../../async-context.ts';
import { orAborted } from '../../cancellation.ts';
import { errorText } from '../../error-text.ts';
import { EtcdConnectionFailed } from '../../errors.ts';
import { Endpoint } from '../endpoint.ts';
import type { HttpSettings } from '../options.ts';
import { Members } from './members.ts';
import { RateLimit } from './rate-limit.ts';
import { type Ask, Round, type RoundOptions } from './round.ts';

/** The members of one cluster. Stays with a member while it answers and fails over to the next one; never drops a member. */
export class Endpoints {
  readonly rateLimit = new RateLimit();
  readonly #settings: HttpSettings;
  #finding: Promise<Members> | undefined;
  #found: Members | undefined;

  constructor(settings: HttpSettings) {
    this.#settings = settings;
  }

  /** Makes one call; see {@link Round.run}. */
  async call<T>(options: RoundOptions, ask: Ask<T>): Promise<T> {
    const members = this.#found ?? (await orAborted(this.#members(), options.ending));
    return new Round(members, this.rateLimit, options, ask).run();
  }

  /** Closes every connection. No call may be made afterwards. */
  async destroy(): Promise<void> {
    await this.#found?.destroy();
  }

  #members(): Promise<Members> {
    this.#finding ??= detached(() => this.#find());
    return this.#finding;
  }

  async #find(): Promise<Members> {
    try {
      const list = (await this.#urls()).map((url) => new Endpoint(url, this.#settings));
      this.#found = new Members(list, this.rateLimit);
      return this.#found;
    } catch (error) {
      this.#finding = undefined; // so that the next call asks DNS again
      throw error;
    }
  }

  async #urls(): Promise<readonly string[]> {
    const { endpoints, srvDomain, tls } = this.#settings;
    return endpoints ?? discover(srvDomain ?? '', Object.keys(tls).length > 0 ? 'https' : 'http', resolveSrv);
  }
}

/**
 * Looks up the members in DNS. Returns their origins in order of SRV priority, then weight.
 * @throws {EtcdConnectionFailed} if the lookup fails or finds no records
 */
export async function discover(
  domain: string,
  protocol: 'http' | 'https',
  resolve: typeof resolveSrv,
): Promise<readonly string[]> {
  const name = `_etcd._tcp.${domain}`;
  const records = await resolve(name).catch((error) => {
    throw new EtcdConnectionFailed(`SRV lookup of ${name} failed: ${errorText(error)}`, { cause: error });
  });
  if (records.length === 0) throw new EtcdConnectionFailed(`SRV lookup of ${name} found no records`);
  records.sort((a, b) => a.priority - b.priority || b.weight - a.weight);
  return records.map(({ name: host, port }) => new URL(`${protocol}://${host}:${port}`).origin);
}
