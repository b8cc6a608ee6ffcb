import { resolveSrv } from 'node:dns/promises';
import {
  type EndpointFailure,
  EtcdClusterIdChanged,
  EtcdCompareFailed,
  EtcdConnectionFailed,
  type EtcdErrorFields,
  EtcdEventIndexCleared,
  EtcdException,
  EtcdKeyNotFound,
  EtcdTlsFailed,
  EtcdUnusableAnswer,
  EtcdWatcherCleared,
  isTransient,
} from '../errors.ts';
import { atDeadline, Deadline, ignore, now, orAborted } from '../timing.ts';
import { Endpoint } from './endpoint.ts';
import { inTurn } from './in-turn.ts';
import type { ClientSettings } from './options.ts';
import { Pace } from './pace.ts';

/**
 * `hedged`, for reads and what can happen once only: while a member takes long, the next one is asked, too. `safe`: may be
 * sent to another member though the first may have carried it out. `never`: only if it surely did not.
 */
export type Repeat = 'hedged' | 'safe' | 'never';

export interface RoundOptions {
  readonly repeat: Repeat;
  /** Aborts when the call ends early, and once it is over: slower answers are not needed then. */
  readonly signal: AbortSignal;
  /** Seconds an attempt gets. */
  readonly timeout: number;
  /** Where hedged: seconds until another member is asked. */
  readonly patience: number;
  /** Whether it keeps the process alive. */
  readonly ref: boolean;
}

interface Asked {
  /** The present member as the round began: who answers becomes it, unless others have moved on since. */
  readonly first: number;
  /** Milliseconds on the monotonic clock. */
  readonly askedAt: number;
}

/** The members of one cluster: stays with one that answers, goes to the next when it does not, drops none. */
export class Endpoints {
  readonly pace = new Pace();
  readonly #settings: ClientSettings;
  #list: Promise<readonly Endpoint[]> | undefined;
  #resolved: readonly Endpoint[] = [];
  #current = 0;
  /** Those that gave no answer since any member last did. */
  readonly #failing = new Set<Endpoint>();
  /** When each was asked what it has answered, the latest. */
  readonly #heard = new Map<Endpoint, number>();

  constructor(settings: ClientSettings) {
    this.#settings = settings;
  }

  /**
   * Tries the call on each member once (where hedged, as often as its time allows), until the signal aborts: on the present
   * one where it has not been asked yet. While no member answers, each attempt waits for its turn.
   * @throws the first error that is not the member's fault; else one error that keeps every member's failure
   */
  async call<T>(options: RoundOptions, ask: (endpoint: Endpoint) => Promise<T>): Promise<T> {
    const { repeat, signal, timeout, patience, ref } = options;
    const list = await orAborted(this.#resolve(), signal);
    const asked = new Set<number>();
    const failures: EndpointFailure[] = [];
    let first: number | undefined;
    let enough: Deadline | undefined;
    const attempt = async (_: number, askAnotherAt: (deadline: Deadline) => void): Promise<T> => {
      // Whom it asked before says nothing then, and the one that is left may be the one that stays dead.
      if (this.pace.isDown) asked.clear();
      await this.pace.turn(signal, ref);
      first ??= this.#current;
      const at = this.#choose(list, asked);
      const endpoint = list[at] as Endpoint;
      const askedAt = now();
      let cancel: () => void = ignore;
      if (repeat === 'hedged') {
        enough ??= Deadline.after(timeout);
        const next = Deadline.after(patience);
        // First, so that the next one already waits for its turn if this was the last one hoped for.
        cancel = atDeadline(next, () => this.#isOverdue(list, at, askedAt), { ref: false });
        if (next.at < enough.at) askAnotherAt(next);
      }
      try {
        const result = await ask(endpoint);
        // A poll that ends without an event proves nothing.
        if (result !== undefined) this.#answered(list, at, { first, askedAt });
        return result;
      } catch (error) {
        if (signal.aborted) throw error;
        if (isMembersFault(error)) {
          if (!this.#isOldNews(endpoint, askedAt, error)) this.#failed(list, at);
          failures.push({ endpoint: endpoint.url, error });
        } else {
          this.#answered(list, at, { first, askedAt });
        }
        throw error;
      } finally {
        cancel();
      }
    };
    const goesOn = (error: unknown): boolean =>
      !signal.aborted && isMembersFault(error) && !(repeat === 'never' && error.outcomeUnknown);
    try {
      return await inTurn(attempt, { count: list.length, goesOn });
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (failures.length === 0) throw error; // not even asked
      throw isMembersFault(error) ? combine(failures) : afterUnclear(error, failures);
    }
  }

  /** Closes every connection; no call may be made afterwards. */
  async destroy(): Promise<void> {
    await Promise.all(this.#resolved.map((endpoint) => endpoint.destroy()));
  }

  /** The present member, or the next after it that this round has not asked yet; once it has asked all, anew. */
  #choose(list: readonly Endpoint[], asked: Set<number>): number {
    if (asked.size === list.length) asked.clear();
    let at = this.#current;
    while (asked.has(at)) at = (at + 1) % list.length;
    asked.add(at);
    // While none answers, each turn is for another member: the present one may be the one that stays dead.
    if (this.pace.isDown) this.#current = (at + 1) % list.length;
    return at;
  }

  #answered(list: readonly Endpoint[], at: number, { first, askedAt }: Asked): void {
    if (this.pace.isDown || this.#current === first) this.#current = at;
    const endpoint = list[at] as Endpoint;
    this.#heard.set(endpoint, Math.max(askedAt, this.#lastHeard(endpoint)));
    this.#failing.clear();
    this.pace.up();
  }

  /** Whether the member has answered what it was asked later. What a socket reports is true right now. */
  #isOldNews(endpoint: Endpoint, askedAt: number, { cause }: EtcdException): boolean {
    return !(cause instanceof Error) && askedAt < this.#lastHeard(endpoint);
  }

  #lastHeard(endpoint: Endpoint): number {
    return this.#heard.get(endpoint) ?? 0;
  }

  /** It is silent for so long that another member is asked: the answer may come, but more requests would not help. */
  #isOverdue(list: readonly Endpoint[], at: number, askedAt: number): void {
    if (askedAt >= this.#lastHeard(list[at] as Endpoint)) this.#fails(list, at);
  }

  #fails(list: readonly Endpoint[], at: number): void {
    this.#failing.add(list[at] as Endpoint);
    if (this.#failing.size === list.length) this.pace.down(list.length);
  }

  #failed(list: readonly Endpoint[], at: number): void {
    this.#fails(list, at);
    if (this.#current === at) this.#current = (at + 1) % list.length;
  }

  #resolve(): Promise<readonly Endpoint[]> {
    this.#list ??= this.#urls().then(
      (urls) => {
        this.#resolved = urls.map((url) => new Endpoint(url, this.#settings));
        return this.#resolved;
      },
      (error) => {
        this.#list = undefined; // ask DNS again next time
        throw error;
      },
    );
    return this.#list;
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

/** Another member may do better: this one did not answer, has no leader, is of another cluster, no etcd at all, or not to be trusted. */
function isMembersFault(error: unknown): error is EtcdException {
  return (
    error instanceof EtcdTlsFailed ||
    error instanceof EtcdUnusableAnswer ||
    error instanceof EtcdClusterIdChanged ||
    (isTransient(error) && !isCleared(error))
  );
}

/** A cleared history is the cluster's, not the member's. */
const isCleared = (error: unknown): boolean =>
  error instanceof EtcdWatcherCleared || error instanceof EtcdEventIndexCleared;

const isUnclear = (error: Error): boolean => error instanceof EtcdException && error.outcomeUnknown;

/** A condition that failed may have failed because an earlier, unclear attempt was carried out. */
function afterUnclear(error: unknown, failures: readonly EndpointFailure[]): unknown {
  const conditionFailed = error instanceof EtcdCompareFailed || error instanceof EtcdKeyNotFound;
  if (!conditionFailed || !failures.some((failure) => isUnclear(failure.error))) return error;
  return rebuild(error, error.message, { failures, outcomeUnknown: true });
}

/** One error for the whole round. */
function combine(failures: readonly EndpointFailure[]): Error {
  const errors = failures.map(({ error }) => error);
  const messages = new Set(failures.map(({ endpoint, error }) => `${endpoint}: ${error.message}`));
  const message = [...messages].join('; ');
  const [first] = errors;
  const alike = first instanceof EtcdException && errors.every((error) => error.constructor === first.constructor);
  const outcomeUnknown = errors.some(isUnclear);
  if (alike && errors.length === 1) return rebuild(first, message, { failures, outcomeUnknown });
  const cause = new AggregateError(errors, message);
  if (alike && !isTransient(first)) return rebuild(first, message, { failures, outcomeUnknown, cause });
  return new EtcdConnectionFailed(`no member gave an answer: ${message}`, { failures, outcomeUnknown, cause });
}

function rebuild(error: EtcdException, message: string, fields: EtcdErrorFields): EtcdException {
  const ErrorClass = error.constructor as typeof EtcdException;
  const { errorCode, index, status, cause } = error;
  return new ErrorClass(message, { errorCode, index, status, cause, ...fields });
}
