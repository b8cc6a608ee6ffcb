import { detached } from '../../base/async-context.ts';
import { ignore, Scope } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { errorText } from '../../base/error-text.ts';
import { now } from '../../base/time.ts';
import { Endpoint } from '../endpoint.ts';
import type { HttpSettings } from '../options.ts';
import type { Endpoints } from './endpoints.ts';

const debug = createDebug('client');

/** Milliseconds between two reads of the member list, while calls are made. */
const READ_EVERY = 10_000;
/** Maximum number of members that are learned: the list comes from a server. */
const MOST_LEARNED = 20;
/** Maximum characters of a URL in the list. */
const LONGEST_URL = 300;

/** The client URLs of a cluster's members, as one of them lists them. */
export interface MemberList {
  readonly urls: readonly string[];
  readonly clusterId: string | undefined;
}

/** How to read the member list. */
export interface MemberListReader {
  /** Reads it from a member that is known. */
  fromAny(): Promise<MemberList>;
  /** Reads it from this member, without credentials. */
  from(endpoint: Endpoint, ending: Scope): Promise<MemberList>;
}

/** Adds the members in the list of the cluster to those that the client was given, and removes them again when the list no longer has them. */
export class FollowedMembers {
  readonly #endpoints: Endpoints;
  readonly #settings: HttpSettings;
  readonly #read: MemberListReader;
  readonly #destroyed: Scope;
  /** The only cluster whose list counts. */
  #clusterId: string | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #isReading = false;

  constructor(endpoints: Endpoints, settings: HttpSettings, read: MemberListReader, destroyed: Scope) {
    this.#endpoints = endpoints;
    this.#settings = settings;
    this.#read = read;
    this.#destroyed = destroyed;
    this.#clusterId = settings.expectedClusterId;
  }

  /**
   * Reads the list in the background, unless that was done a moment ago. A failure changes nothing.
   * @param clusterId of the cluster that has just answered
   */
  update(clusterId: string | undefined): void {
    this.#forgetOthers(clusterId);
    if (this.#isReading || now() < this.#readAt + READ_EVERY || clusterId === undefined) return;
    this.#clusterId ??= clusterId;
    this.#isReading = true;
    void detached(() => this.#update());
  }

  /** Stops using the members of a cluster that was replaced, unless the client expects just that one. */
  #forgetOthers(clusterId: string | undefined): void {
    const isReplaced = clusterId !== undefined && this.#clusterId !== undefined && clusterId !== this.#clusterId;
    if (!isReplaced || this.#settings.expectedClusterId !== undefined) return;
    this.#clusterId = clusterId;
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#endpoints.learn([], undefined).catch(ignore);
  }

  async #update(): Promise<void> {
    try {
      const { urls, clusterId } = await this.#read.fromAny();
      if (clusterId !== this.#clusterId) throw new Error(`the list is of the cluster ${clusterId}`);
      const wanted = [...new Set(urls.flatMap((url) => this.#originOf(url)))].slice(0, MOST_LEARNED);
      const { learned } = this.#endpoints;
      const usable = await Promise.all(wanted.map((url) => learned.includes(url) || this.#isOfCluster(url)));
      const found = wanted.filter((_, at) => usable[at]);
      // The cluster may have been replaced in the meantime.
      if (this.#destroyed.aborted || clusterId !== this.#clusterId || String(found) === String(learned)) return;
      await this.#endpoints.learn(found, clusterId);
    } catch (error) {
      debug('the member list could not be used: %s', errorText(error));
    } finally {
      this.#readAt = now();
      this.#isReading = false;
    }
  }

  /** Returns the origin of a URL in the list, if it may be used and is not one that was given. */
  #originOf(text: string): readonly string[] {
    if (text.length > LONGEST_URL || text.includes('@') || !URL.canParse(text)) return [];
    const { protocol, origin } = new URL(text);
    const given = this.#endpoints.given;
    // Whoever was given TLS only must not send a password without TLS.
    const mayBePlain = given.some((url) => url.startsWith('http:'));
    const isAllowed = protocol === 'https:' || (protocol === 'http:' && mayBePlain);
    return isAllowed && !given.includes(origin) ? [origin] : [];
  }

  /** Whether a server of the cluster answers there. It may be a port without HTTP, or a server of another cluster. */
  async #isOfCluster(url: string): Promise<boolean> {
    // Without credentials: a server has chosen the URL.
    const nobody = { username: undefined, password: undefined, authorization: undefined };
    const endpoint = new Endpoint(url, { ...this.#settings, ...nobody });
    const ending = new Scope(this.#destroyed);
    try {
      const { clusterId } = await this.#read.from(endpoint, ending);
      return clusterId === this.#clusterId;
    } catch (error) {
      debug('%s is in the member list, but is not used: %s', url, errorText(error));
      return false;
    } finally {
      ending.dispose();
      await endpoint.destroy();
    }
  }
}
