import { resolveSrv } from 'node:dns/promises';
import { type EndpointFailure, EtcdConnectionFailed } from '../errors.ts';
import { atDeadline, Deadline, ignore, orAborted, type Scope } from '../timing.ts';
import { Endpoint } from './endpoint.ts';
import { afterOthers, combine, isMembersFault, stillSilent } from './failures.ts';
import { inTurn } from './in-turn.ts';
import { type Asked, Members } from './members.ts';
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
  readonly ending: Scope;
  /** Seconds an attempt gets. */
  readonly timeout: number;
  /** Where hedged: seconds until another member is asked. */
  readonly patience: number;
  /** When those that are silent are given up at the latest. */
  readonly limit: Deadline;
  /** Whether it keeps the process alive. */
  readonly ref: boolean;
}

/** The members of one cluster: stays with one that answers, goes to the next when it does not, drops none. */
export class Endpoints {
  readonly pace = new Pace();
  readonly #settings: ClientSettings;
  #finding: Promise<Members> | undefined;
  #found: Members | undefined;

  constructor(settings: ClientSettings) {
    this.#settings = settings;
  }

  /**
   * Tries the call on each member once (where hedged, as often as its time allows), until it is ended: on the present
   * one where it has not been asked yet. While no member answers, each attempt waits for its turn.
   * @throws the first error that is not the member's fault; else one error that keeps every member's failure
   */
  async call<T>(options: RoundOptions, ask: (endpoint: Endpoint) => Promise<T>): Promise<T> {
    const { repeat, ending, timeout, patience, limit, ref } = options;
    const members = this.#found ?? (await orAborted(this.#members(), ending));
    const before = new Set<number>();
    const failures: EndpointFailure[] = [];
    const underWay = new Set<Asked>();
    let first: number | undefined;
    let end: Deadline | undefined;
    const attempt = async (askAnotherAt: (deadline: Deadline) => void): Promise<T> => {
      // In an outage, whom it asked before says nothing, and the one that is left may be the one that stays dead.
      if (this.pace.isDown) before.clear();
      await this.pace.turn(ending, ref);
      const asked = members.choose(before, first);
      first = asked.first;
      let cancel: () => void = ignore;
      // Each member gets its time.
      end ??= earlier(limit, Deadline.after(timeout + patience * (members.count - 1)));
      if (repeat === 'hedged' && patience < timeout) {
        const next = Deadline.after(patience);
        // First, so that the next one already waits for its turn if this was the last one hoped for.
        cancel = atDeadline(next, () => members.overdue(asked), { ref: false });
        askAnotherAt(next);
      }
      underWay.add(asked);
      try {
        const result = await ask(asked.endpoint);
        // A poll that ends without an event proves nothing.
        if (result !== undefined) members.answered(asked);
        return result;
      } catch (error) {
        if (ending.aborted) throw error;
        if (!isMembersFault(error)) {
          members.answered(asked);
          throw afterOthers(error, failures, underWay.size > 1);
        }
        members.failed(asked, error.cause);
        failures.push({ endpoint: asked.endpoint.url, error });
        throw error;
      } finally {
        underWay.delete(asked);
        cancel();
      }
    };
    const goesOn = (error: unknown): boolean =>
      !ending.aborted && isMembersFault(error) && !(repeat === 'never' && error.outcomeUnknown);
    try {
      return await inTurn(attempt, { count: members.count, goesOn, isLate: () => end?.passed ?? false });
    } catch (error) {
      ending.throwIfAborted();
      // Without a failure no turn came.
      if (!isMembersFault(error) || failures.length === 0) throw error;
      throw combine([...failures, ...[...underWay].map(stillSilent)]);
    }
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

const earlier = (one: Deadline, other: Deadline): Deadline => (one.at < other.at ? one : other);

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
