import { ignore, orAborted, Scope, type Source } from '../../base/cancellation.ts';
import { type Running, STOPPED } from '../../base/pending-work.ts';
import { now } from '../../base/time.ts';
import { isNotCarriedOut } from '../../errors.ts';
import { noEntry } from '../../recipe/entries/lost.ts';
import { hedgeReadAfter } from '../../recipe/entries/timing.ts';
import type {
  EnterOptions,
  Entry,
  FencingTokens,
  LeaveOptions,
  RenewalOptions,
  Standing,
  StandingOptions,
  StoreCall,
  Ticket,
  TicketOptions,
} from '../../recipe/store.ts';
import type { KeysApi } from '../keys-api.ts';
import { leavingIn, mustSearch, type V2OwnEntry } from './entry.ts';
import { append, type RequestLimits, verify } from './entry-requests.ts';
import { V2Standings } from './standing.ts';
import { checkWidth, V2TicketEntry } from './ticket-entry.ts';
import { enterTimeout, hedgeRenewalAfter } from './timing.ts';
import type { UnusedDirectories } from './unused-directories.ts';

interface V2TicketOptions extends TicketOptions {
  readonly path: string;
  readonly value: string;
}

/**
 * A {@link Ticket} on etcd v2. It has at most one entry, finds that entry by its value, and leaves no key behind, with the exception
 * below.
 *
 * An append whose answer is lost may be committed at any later time. So the ticket counts each such append until its key has been
 * seen. It reads the queue before the next append, and removes extra keys with its value after each listing. Once the entry has
 * been given up, background reads do the same for {@link SEARCH_APPEND_FOR}, or until the client is closed. A key that appears later
 * stays until its TTL has passed. An entry that is left to expire stays the own one, so these reads do not remove it.
 */
export class V2Ticket implements Ticket {
  readonly #keys: KeysApi;
  readonly #entry: V2TicketEntry;
  readonly #mayExist: boolean;
  #standings: V2Standings;
  /** The append under way, if any. */
  #appending: Running | undefined;

  constructor(keys: KeysApi, unused: UnusedDirectories, { path, value, mayExist = false }: V2TicketOptions) {
    this.#keys = keys;
    this.#entry = new V2TicketEntry(keys, unused, path, value);
    this.#mayExist = mayExist;
    this.#standings = new V2Standings(this.#entry);
  }

  get path(): string {
    return this.#entry.path;
  }

  get value(): string {
    return this.#entry.value;
  }

  get last(): V2OwnEntry | undefined {
    return this.#entry.state.last;
  }

  get fencingTokens(): FencingTokens | undefined {
    return this.last && { v2: this.last.rank };
  }

  async find(options: StoreCall = {}): Promise<V2OwnEntry | undefined> {
    await this.#endOtherWork(options.signal);
    try {
      return await this.#entry.find(options);
    } finally {
      this.#entry.settler.start();
    }
  }

  async enter(ttl: number | null, { signal, failed }: EnterOptions): Promise<V2OwnEntry | undefined> {
    const entry = this.#entry;
    this.#standings.end();
    this.#standings = new V2Standings(entry);
    await this.#endOtherWork(signal);
    if (leavingIn(entry.state).length > 0) await entry.settle({ signal });
    const limits = { signal, attemptTimeout: enterTimeout(ttl, failed) };
    // Hedged early, because others may wait behind the entry.
    const search = { signal, attemptTimeout: hedgeReadAfter(ttl, false) };
    for (;;) {
      if (mustSearch(entry.state, this.#mayExist)) await entry.find(search);
      if (entry.own) return entry.renewIfPresent(ttl, limits);
      const own = await this.#append(ttl, limits);
      if (!mustSearch(entry.state, false)) return own;
      await entry.find(search);
      if (entry.own === own && isFresh(own)) return own;
    }
  }

  async standing({ signal, latest = false }: StandingOptions): Promise<Standing> {
    if (latest) this.#standings.doubt();
    return this.#standings.read(signal);
  }

  async changed(on: Entry, { signal }: StoreCall): Promise<boolean> {
    return this.#standings.changed(on, signal);
  }

  async renew({ signal, timeout }: RenewalOptions): Promise<V2OwnEntry> {
    const { granted } = this.#entry.required();
    const attemptTimeout = granted === null ? undefined : hedgeRenewalAfter(granted);
    return this.#entry.renew(granted, { signal, attemptTimeout, timeout });
  }

  async verify(): Promise<Error | undefined> {
    const { own } = this.#entry;
    return own ? verify(this.#keys, own) : noEntry(this.path, this.value);
  }

  async leave({ signal, until }: LeaveOptions = {}): Promise<void> {
    const entry = this.#entry;
    this.#standings.end();
    await this.#endOtherWork(signal);
    entry.apply({ is: 'givenUp', until: until?.passed ? undefined : until });
    try {
      await entry.settle({ signal, background: entry.pending.closing.aborted });
    } finally {
      // Not during an append: the new key would be removed as an extra one.
      entry.settler.start();
    }
  }

  async #append(ttl: number | null, { signal, attemptTimeout }: RequestLimits): Promise<V2OwnEntry> {
    const stop = new Scope();
    const work = this.#appendOnce(ttl, { signal: stop, attemptTimeout });
    // An abort of the call does not abort the append: its answer names the key to remove.
    this.#appending = { ended: work.then(ignore, ignore), stop };
    const own = await (signal ? orAborted(work, signal) : work);
    this.#appending = undefined;
    checkWidth(own.key);
    return own;
  }

  async #appendOnce(ttl: number | null, limits: RequestLimits): Promise<V2OwnEntry> {
    const { path, value } = this.#entry;
    this.#entry.apply({ is: 'appendSent' });
    try {
      const { own, queue } = await append(this.#keys, path, value, ttl, limits);
      this.#entry.apply({ is: 'appended', own });
      this.#standings.appended(own, queue);
      return own;
    } catch (error) {
      const isRefused = isNotCarriedOut(error);
      this.#entry.apply({ is: isRefused ? 'appendRefused' : 'appendLost' });
      throw error;
    }
  }

  /** Stops the background work. Waits for the answer to an append of an aborted call, or aborts that when the signal aborts. */
  async #endOtherWork(signal: Source | undefined): Promise<void> {
    await this.#entry.stopSettling();
    if (!this.#appending) return;
    const { ended, stop } = this.#appending;
    await (signal ? orAborted(ended, signal).catch(() => stop.abort(STOPPED)) : ended);
    await ended;
    this.#appending = undefined;
  }
}

/** Whether less than a third of the TTL has passed since the last write, so that the entry need not be renewed yet. */
const isFresh = ({ granted, sentAt }: V2OwnEntry): boolean => granted === null || now() < sentAt + (granted * 1000) / 3;
