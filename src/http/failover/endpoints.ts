import { resolveSrv } from 'node:dns/promises';
import { orAborted } from '../../cancellation.ts';
import { EtcdConnectionFailed } from '../../errors.ts';
import { Endpoint } from '../endpoint.ts';
import type { HttpSettings } from '../options.ts';
import { Members } from './members.ts';
import { Pace } from './rate-limit.ts';
import { Round, type RoundOptions } from './round.ts';

/** The members of one cluster: stays with one that answers, goes to the next when it does not, drops none. */
export class Endpoints {
  readonly pace = new Pace();
  readonly #settings: HttpSettings;
  #finding: Promise<Members> | undefined;
  #found: Members | undefined;

  constructor(settings: HttpSettings) {
    this.#settings = settings;
  }

  /** See {@link Round.run}. */
  async call<T>(options: RoundOptions, ask: (endpoint: Endpoint) => Promise<T>): Promise<T> {
    const members = this.#found ?? (await orAborted(this.#members(), options.ending));
    return new Round(members, this.pace, options, ask).run();
  }

  /** Closes every connection; no call may be made afterwards. */
  async destroy(): Promise<void> {
    await this.#found?.destroy();
  }

  #members(): Promise<Members> {
    this.#finding ??= this.#urls().then(
      (urls) => {
        const list = urls.map((url) => new Endpoint(url, this.#settings));
        this.#found = new Members(list, this.pace);
        return this.#found;
      },
      (error) => {
        this.#finding = undefined; // ask DNS again next time
        throw error;
      },
    );
    return this.#finding;
  }

  async #urls(): Promise<readonly string[]> {
    const { endpoints, srvDomain, tls } = this.#settings;
    return endpoints ?? discover(srvDomain ?? '', Object.keys(tls).length > 0 ? 'https' : 'http', resolveSrv);
  }
}

/** Members named by SRV records, best priority first, heavier weight first. */
export async function discover(
  domain: string,
  protocol: 'http' | 'https',
  resolve: typeof resolveSrv,
): Promise<readonly string[]> {
  const name = `_etcd._tcp.${domain}`;
  const records = await resolve(name).catch((error) => {
    throw new EtcdConnectionFailed(`no endpoints: looking up SRV ${name} failed`, { cause: error });
  });
  if (records.length === 0) throw new EtcdConnectionFailed(`no endpoints: SRV ${name} has no records`);
  records.sort((a, b) => a.priority - b.priority || b.weight - a.weight);
  return records.map(({ name: host, port }) => new URL(`${protocol}://${host}:${port}`).origin);
}
