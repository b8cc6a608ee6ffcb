import { EtcdClusterIdChanged, EtcdException } from '../../errors.ts';
import type {
  EnterOptions,
  Entry,
  FencingTokens,
  LeaveOptions,
  OwnEntry,
  RenewalOptions,
  Standing,
  StandingOptions,
  StoreCall,
  Ticket,
  TicketOptions,
} from '../../recipe/store.ts';
import { NotFound } from '../gateway/errors.ts';
import { isGivenUp, isReplaceable } from './entry.ts';
import { EntryWriter } from './entry-writer.ts';
import { isUnexplained, whyLost } from './loss-reason.ts';
import type { Session } from './session.ts';
import { V3Standings } from './standings.ts';
import { TicketEntry } from './ticket-entry.ts';
import { enterLimits } from './timing.ts';

/** Maximum number of leases that one try to enter the queue uses. */
const MOST_LEASES = 3;

/** A {@link Ticket} on etcd v3. It uses one key until its entry is gone, so it has at most one entry, even if answers are lost. */
export class V3Ticket implements Ticket {
  readonly #session: Session;
  readonly #entry: TicketEntry;
  readonly #standings: V3Standings;
  readonly #writer: EntryWriter;

  constructor(session: Session, path: string, value: string, options: TicketOptions = {}) {
    this.#session = session;
    this.#entry = new TicketEntry(session, path, value, options);
    this.#standings = new V3Standings(session.requests, path);
    this.#writer = new EntryWriter(this.#entry, this.#standings);
  }

  get path(): string {
    return this.#entry.path;
  }

  get value(): string {
    return this.#entry.value;
  }

  get last(): OwnEntry | undefined {
    return this.#entry.state.last;
  }

  get fencingTokens(): FencingTokens | undefined {
    const { token } = this.#standings;
    return token === undefined ? undefined : { v3: token };
  }

  get isReplaceable(): boolean {
    return isReplaceable(this.#entry.state);
  }

  async enter(ttl: number | null, options: EnterOptions): Promise<OwnEntry | undefined> {
    this.#entry.apply({ is: 'callBegan' });
    try {
      return await this.#enter(ttl, options);
    } finally {
      this.#entry.apply({ is: 'callEnded' });
    }
  }

  async #enter(
    ttl: number | null,
    { signal, failed, keepAlive, replacing }: EnterOptions,
  ): Promise<OwnEntry | undefined> {
    const [entry, writer, terms] = [this.#entry, this.#writer, { ttl, keepAlive }];
    await entry.stopSettling();
    // Finish the removal first: the next entry must have a greater token.
    if (isGivenUp(entry.state)) await entry.settle({ signal });
    entry.takeKey();
    this.#standings.appended(undefined);
    const old = replacing instanceof V3Ticket ? replacing.#entry : undefined;
    for (let tries = 1; ; tries += 1) {
      try {
        if (entry.own) return await writer.reenter(entry.own, terms, signal);
        const lease = await writer.leaseFor(terms, signal);
        return await writer.append(lease, { signal, ...enterLimits(failed) }, old);
      } catch (error) {
        // The lease has ended since it was last renewed.
        if (!(error instanceof NotFound)) throw error;
        if (tries === MOST_LEASES) throw leasesGone(error);
      }
    }
  }

  async find({ signal }: StoreCall = {}): Promise<OwnEntry | undefined> {
    const { key, value, settler } = this.#entry;
    await this.#entry.stopSettling();
    const { own, clusterId } = await this.#session.requests.entries.get(key, { signal }).catch((error: unknown) => {
      // Do not begin background removals only because of a late append: the search for it would remove the own entry.
      if (this.#entry.state.place.is !== 'queued') settler.start();
      throw error;
    });
    if (own?.value !== value) {
      settler.start();
      return undefined;
    }
    this.#entry.apply({ is: 'found', own, clusterId });
    return this.#entry.own;
  }

  async standing(options: StandingOptions): Promise<Standing> {
    const own = this.#entry.required();
    try {
      return await this.#standings.read(own, options);
    } catch (error) {
      throw await this.#entry.explained(own, this.#entry.noted(error));
    }
  }

  async changed(_: Entry, { signal }: StoreCall): Promise<boolean> {
    return this.#standings.changed(this.#entry.required().granted, signal);
  }

  async renew(options: RenewalOptions): Promise<OwnEntry> {
    const own = this.#entry.required();
    return this.#writer.renew(own, options, own.sentAt);
  }

  async verify(): Promise<Error | undefined> {
    const own = this.#entry.required();
    try {
      const why = whyLost(own, await this.#session.requests.entries.get(own.key, {}));
      return why && (await this.#entry.explained(own, this.#entry.noted(why)));
    } catch (error) {
      if (error instanceof EtcdClusterIdChanged) return this.#entry.noted(error);
      throw error;
    }
  }

  watch(onLost: (why: Error) => void): () => void {
    const own = this.#entry.required();
    let isWatched = true;
    const report = (why: Error): void => {
      if (isWatched) onLost(why);
    };
    const onGone = (why: Error): void => {
      this.#entry.noted(why);
      if (isUnexplained({ own, lease: own.lease?.id }, why)) void this.#entry.explained(own, why).then(report);
      else report(why);
    };
    const stop = this.#session.losses.watch({ own, onLost: onGone });
    return () => {
      isWatched = false;
      stop();
    };
  }

  async leave({ signal, until }: LeaveOptions = {}): Promise<void> {
    const entry = this.#entry;
    entry.apply({ is: 'callBegan' });
    try {
      await entry.stopSettling();
      this.#standings.left();
      entry.apply({ is: 'givenUp', until: until?.passed ? undefined : until });
      await entry.settle({ signal, background: entry.pending.closing.aborted });
    } finally {
      entry.apply({ is: 'callEnded' });
      entry.settler.start();
    }
  }
}

function leasesGone({ message, errorCode, httpStatus }: NotFound): EtcdException {
  const why = `${message}: ${MOST_LEASES} new leases did not exist when they were used`;
  return new EtcdException(`${why}; do all endpoints belong to the same cluster?`, { errorCode, httpStatus });
}
