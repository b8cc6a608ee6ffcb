import { detached } from '../../base/async-context.ts';
import { ignore, orAborted, pause, type Scope, sleep } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { errorText } from '../../base/error-text.ts';
import { now } from '../../base/time.ts';
import { Endpoint } from '../endpoint.ts';
import type { HttpSettings } from '../options.ts';
import { Directory, type Location } from './directory.ts';
import { Members } from './members.ts';
import { RateLimit } from './rate-limit.ts';
import { type Ask, Round, type RoundOptions } from './round.ts';

const debug = createDebug('client');

/** Milliseconds after which the members are looked up again. Node does not tell the TTL of SRV records. */
const LOOK_UP_EVERY = 60_000;
/** Minimum milliseconds between two lookups while no member answers. */
const LOOK_UP_GAP = 2000;
/** Maximum milliseconds for which calls wait for a lookup because all known members have failed. */
const LOOK_UP_WAIT = 500;
/** Minimum milliseconds between two lookups until the first one succeeds. Calls wait for it. */
const FIRST_GAP = 250;

/**
 * The members of one cluster. Stays with a member while it answers and fails over to the next one. Drops a member only when neither DNS
 * nor the member list names it any longer.
 */
export class Endpoints {
  readonly rateLimit = new RateLimit();
  readonly #settings: HttpSettings;
  readonly #directory: Directory;
  /** The members by URL and address. */
  #endpoints = new Map<string, Endpoint>();
  /** Members that DNS no longer names, and that still have connections. */
  readonly #retired = new Set<Endpoint>();
  #finding: Promise<Members> | undefined;
  #members: Members | undefined;
  /** The lookup that is under way. Resolves after half a second at the latest. */
  #lookup: Promise<void> | undefined;
  /** When the last lookup ended. */
  #lookedUpAt = Number.NEGATIVE_INFINITY;

  constructor(settings: HttpSettings) {
    this.#settings = settings;
    this.#directory = new Directory(settings);
  }

  /** Makes one call; see {@link Round.run}. Waits for a lookup only if there was none before. */
  call<T>(options: RoundOptions, ask: Ask<T>): Promise<T> {
    const members = this.#members;
    if (!members) return orAborted(this.#findFirst(), options.ending).then(() => this.call(options, ask));
    void this.#lookUp(members, LOOK_UP_EVERY);
    return new Round(members, this.rateLimit, options, ask).run();
  }

  /** Resolves to all members, as of the last lookup. Waits for a lookup only if there was none before. */
  async list(ending: Scope): Promise<readonly Endpoint[]> {
    const members = this.#members ?? (await orAborted(this.#findFirst(), ending));
    void this.#lookUp(members, LOOK_UP_EVERY);
    return members.list;
  }

  /** URLs of the members that the client was given, or that SRV records name. */
  get given(): readonly string[] {
    return this.#directory.given;
  }

  /** URLs of the members that were learned from the member list. */
  get learned(): readonly string[] {
    return this.#directory.learned.urls;
  }

  /** Uses these members, too, in place of those that were learned before. They must belong to the cluster. */
  async learn(urls: readonly string[], clusterId: string | undefined): Promise<void> {
    this.#directory.learned = { urls, clusterId };
    if (this.#members) await this.#replace(this.#members);
  }

  /** Whether only one member is known, and neither DNS nor the member list can name others. */
  get isOneMember(): boolean {
    return this.#directory.isFixed && this.#settings.endpoints?.length === 1;
  }

  /** Closes every connection. No call may be made afterwards. */
  async destroy(): Promise<void> {
    await Promise.all([...this.#endpoints.values(), ...this.#retired].map((endpoint) => endpoint.destroy()));
  }

  #findFirst(): Promise<Members> {
    this.#finding ??= detached(() =>
      this.#find().finally(() => {
        this.#finding = undefined; // so that the next call asks DNS again after a failure
      }),
    );
    return this.#finding;
  }

  async #find(): Promise<Members> {
    const delay = this.#lookedUpAt + FIRST_GAP - now();
    if (delay > 0) await sleep(delay);
    try {
      const list = this.#endpointsAt(await this.#directory.find());
      const members = new Members(list, this.rateLimit, () => this.#lookUp(members, LOOK_UP_GAP));
      this.#members = members;
      return members;
    } finally {
      this.#lookedUpAt = now();
    }
  }

  /**
   * Looks up the members again unless the last lookup is newer than `age` milliseconds. A failed lookup changes nothing. Returns a
   * promise while a lookup is under way: it resolves when that ends, or half a second after it began, and never rejects.
   */
  #lookUp(members: Members, age: number): Promise<void> | undefined {
    if (this.#lookup || this.#directory.isFixed || now() < this.#lookedUpAt + age) return this.#lookup;
    this.#lookup = detached(() => Promise.race([this.#replace(members), pause(LOOK_UP_WAIT)]));
    return this.#lookup;
  }

  async #replace(members: Members): Promise<void> {
    try {
      members.replace(this.#endpointsAt(await this.#directory.find()));
    } catch (error) {
      debug('the members could not be looked up: %s', errorText(error));
    } finally {
      this.#lookedUpAt = now();
      this.#lookup = undefined;
    }
  }

  /** Returns the endpoints at these locations. Keeps the endpoints that exist, with their connections. */
  #endpointsAt(locations: readonly Location[]): readonly Endpoint[] {
    const before = this.#endpoints;
    this.#endpoints = new Map();
    for (const location of locations) {
      const { url, addresses, clusterId } = location;
      const key = keyOf(location);
      this.#endpoints.set(key, before.get(key) ?? new Endpoint(url, this.#settings, { addresses, clusterId }));
    }
    const list = [...this.#endpoints.values()];
    for (const endpoint of before.values()) if (!list.includes(endpoint)) this.#retired.add(endpoint);
    for (const endpoint of this.#retired) {
      if (endpoint.isConnected) continue; // requests may be under way
      this.#retired.delete(endpoint);
      endpoint.destroy().catch(ignore);
    }
    return list;
  }
}

/**
 * Returns a key for an endpoint: two locations with one key are the same. The other addresses of the host name are a part of it, because
 * the endpoint connects to them if its own one refuses. Their order is not: DNS rotates it.
 */
function keyOf({ url, addresses = [], clusterId }: Location): string {
  const [own, ...others] = addresses.map(({ address }) => address);
  return JSON.stringify([url, clusterId, own, ...others.sort()]);
}
