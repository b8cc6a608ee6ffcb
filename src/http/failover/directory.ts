import type { LookupAddress } from 'node:dns';
import { lookup, resolveSrv } from 'node:dns/promises';
import { isIP } from 'node:net';
import { pause } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { errorText } from '../../base/error-text.ts';
import { addressOf } from '../checks/endpoints.ts';
import type { HttpSettings } from '../options.ts';
import { proxyFor } from '../sockets/proxies.ts';
import { shuffled } from './order.ts';
import { discover } from './srv.ts';

const debug = createDebug('client');

/** Maximum milliseconds to wait for the addresses of host names. */
const MAX_WAIT = 1000;

/** Where a member listens. */
export interface Location {
  /** Its origin, such as `http://etcd-1:2379`, with its path, or its Unix socket, such as `unix:///run/etcd.sock`. */
  readonly url: string;
  /** The addresses of its host name, its own one first. Undefined for an IP address and a socket, and if the addresses are not known. */
  readonly addresses?: readonly LookupAddress[] | undefined;
  /** Of a member that was learned from the member list: the only cluster that it may belong to. */
  readonly clusterId?: string | undefined;
}

/** Members that were learned from the member list. */
export interface LearnedMembers {
  readonly urls: readonly string[];
  readonly clusterId: string | undefined;
}

/** Finds out where the members listen. Each address of a host name counts as a member. */
export class Directory {
  /** Whether neither DNS nor the member list is needed, so that the locations never change. */
  readonly isFixed: boolean;
  learned: LearnedMembers = { urls: [], clusterId: undefined };
  readonly #settings: HttpSettings;
  /** The members that the client was given, as of the last lookup. */
  #given: readonly string[];
  /** The addresses of each host name, as of the last successful lookup. */
  readonly #addresses = new Map<string, readonly LookupAddress[]>();
  /** Lookups of host names that are under way. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(settings: HttpSettings) {
    const { endpoints, followMembers } = settings;
    this.#settings = settings;
    this.#given = endpoints ?? [];
    const isFixed = endpoints?.every((url) => this.#nameIn(url) === undefined) ?? false;
    this.isFixed = isFixed && !followMembers;
  }

  /** URLs of the members that the client was given, or that SRV records name. */
  get given(): readonly string[] {
    return this.#given;
  }

  /**
   * Looks up the locations, in the order in which to ask the members. Keeps the known addresses of a host name whose lookup fails or
   * takes longer than a second.
   * @throws {EtcdConnectionFailed} if the lookup of SRV records fails or finds none
   */
  async find(): Promise<readonly Location[]> {
    const { endpoints, randomizeEndpoints } = this.#settings;
    this.#given = endpoints ?? [...new Set(await discover(this.#settings, resolveSrv))];
    const learned = this.learned.urls.filter((url) => !this.#given.includes(url));
    const urls = [...this.#given, ...learned];
    const names = new Set(urls.flatMap((url) => this.#nameIn(url) ?? []));
    for (const name of this.#addresses.keys()) if (!names.has(name)) this.#addresses.delete(name);
    if (names.size > 0)
      await Promise.race([Promise.all([...names].map((name) => this.#lookUp(name))), pause(MAX_WAIT)]);
    const { clusterId } = this.learned;
    const locations = urls.flatMap((url) =>
      this.#locationsOf(url).map((found) => (learned.includes(url) ? { ...found, clusterId } : found)),
    );
    return endpoints && randomizeEndpoints ? shuffled(locations, Math.random) : locations;
  }

  #locationsOf(url: string): readonly Location[] {
    const addresses = this.#addresses.get(this.#nameIn(url) ?? '') ?? [];
    if (addresses.length === 0) return [{ url }];
    return addresses.map((_, at) => ({ url, addresses: [...addresses.slice(at), ...addresses.slice(0, at)] }));
  }

  /** Returns the host name to look up in DNS. Undefined for an IP address and a Unix socket, and behind a proxy, which looks it up. */
  #nameIn(url: string): string | undefined {
    const { proxies } = this.#settings;
    const { origin, socketPath } = addressOf(url);
    const { hostname } = new URL(origin);
    const isAddress = isIP(hostname.replace(/^\[|\]$/g, '')) !== 0;
    const isLookedUp = socketPath === undefined && !isAddress && !(proxies && proxyFor(origin, proxies));
    return isLookedUp ? hostname : undefined;
  }

  /** Looks up a host name. Never rejects. */
  #lookUp(name: string): Promise<void> {
    const underWay = this.#underWay.get(name);
    if (underWay) return underWay;
    const lookingUp = lookup(name, { all: true })
      .then(
        (addresses) => void this.#addresses.set(name, addresses),
        (error: unknown) => debug('lookup of %s failed: %s', name, errorText(error)),
      )
      .finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, lookingUp);
    return lookingUp;
  }
}
