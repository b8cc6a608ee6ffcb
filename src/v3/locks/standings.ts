import type { Source } from '../../base/cancellation.ts';
import { claimOf, isAlone } from '../../recipe/entries/entry-value.ts';
import { hedgeReadAfter } from '../../recipe/entries/timing.ts';
import { entriesBefore, type Obstacle, obstacleOf, onlyBehind } from '../../recipe/rules.ts';
import type { Entry, OwnEntry, Standing, StandingOptions } from '../../recipe/store.ts';
import type { GatewayCall } from '../gateway/gateway.ts';
import type { Header } from '../gateway/messages.ts';
import type { AppendResult } from '../rpc/append.ts';
import type { V3Entry } from '../rpc/entry.ts';
import { isEntryOf } from '../rpc/keys.ts';
import type { LockRequests } from '../rpc/requests.ts';
import { untilVacated } from './deletion.ts';
import { checkPresent } from './loss-reason.ts';
import { inOrder } from './reading.ts';
import { HOLDER_WITHIN } from './timing.ts';

/** Maximum number of the oldest keys among which the first entry is searched: others belong to locks whose names begin with this lock's. */
const MOST_NESTED = 100;

/** Reads where the own entry of one ticket stands in its queue. */
export class V3Standings {
  readonly #requests: LockRequests;
  readonly #path: string;
  /** The answer to the append. With it, the first standing needs no read. */
  #fresh: AppendResult | undefined;
  /** What the own entry waits for, and the revision of the read that showed it. */
  #behind: { readonly obstacle: Obstacle<V3Entry>; readonly revision: bigint } | undefined;
  /** Rank of the nearest entry in the last wait that ended with a change. */
  #changed: bigint | undefined;
  /** Whether the last wait ended by silence: its member may be down. */
  #wasSilent = false;
  /** The fencing token of the present or last hold. */
  #token: bigint | undefined;
  /** Rank of the entry of the present hold, which keeps its token. */
  #held: bigint | undefined;

  /** @param path directory of the queue */
  constructor(requests: LockRequests, path: string) {
    this.#requests = requests;
    this.#path = path;
  }

  /** The fencing token of the present or last hold; undefined before the first. */
  get token(): bigint | undefined {
    return this.#token;
  }

  /** Sets the answer to the last append; undefined: the answer is out of date. */
  appended(fresh: AppendResult | undefined): void {
    this.#fresh = fresh;
  }

  /** Call this when the ticket leaves its queue. A later hold gets another token, even with the same entry. */
  left(): void {
    this.#fresh = undefined;
    this.#held = undefined;
  }

  /** See {@link Ticket.standing}. */
  async read(own: OwnEntry, { signal, latest }: StandingOptions): Promise<Standing> {
    const fresh = latest ? undefined : this.#fresh;
    this.#fresh = undefined;
    const call = { signal, attemptTimeout: hedgeReadAfter(own.granted, this.#wasSilent) };
    this.#wasSilent = false;
    return (
      (isAlone(claimOf(own.value)) && (await this.#behindOne(own, fresh, call))) || this.#inQueue(own, fresh, call)
    );
  }

  /** See {@link Ticket.changed}. */
  async changed(ttl: number | null, signal: Source | undefined): Promise<boolean> {
    if (!this.#behind) return true;
    const { obstacle, revision } = this.#behind;
    const { nearest, among } = obstacle;
    const end = await untilVacated(this.#requests.watches, this.#path, obstacle, { since: revision, ttl, signal });
    this.#wasSilent = end === 'silence';
    if (end !== 'change') return end === 'silence';
    // A watch of this entry has ended before, but the entry still exists: make the caller pause, in case this repeats.
    const isRepeated = among.length === 1 && this.#changed === nearest.rank;
    this.#changed = nearest.rank;
    return !isRepeated;
  }

  /**
   * Reads only the entry right before the own one, so that the answer does not grow with the queue. Resolves to undefined
   * if that entry belongs to another lock, whose name begins with this lock's: the whole queue must then be read.
   */
  async #behindOne(own: OwnEntry, fresh: AppendResult | undefined, call: GatewayCall): Promise<Standing | undefined> {
    const known = fresh && !fresh.existed ? fresh : undefined;
    const neighbours = known ?? (await this.#requests.entries.neighbours(own.key, own.rank, call));
    checkPresent(own, neighbours);
    const { before } = neighbours;
    if (!before) return this.#stand(own, undefined, neighbours, { first: undefined, position: 1 });
    if (!isEntryOf(this.#path, before.key)) return undefined;
    return this.#stand(own, onlyBehind(before), neighbours, {
      first: this.#firstBy(call.signal),
      position: known?.count,
    });
  }

  async #inQueue(own: OwnEntry, fresh: AppendResult | undefined, call: GatewayCall): Promise<Standing> {
    const listing = fresh?.all
      ? { ...fresh, entries: fresh.all }
      : await this.#requests.listings.read(this.#path, call);
    const entries = listing.entries.filter(({ key }) => isEntryOf(this.#path, key));
    const present = entries.find(({ key }) => key === own.key);
    checkPresent(own, { clusterId: listing.clusterId, own: present });
    const obstacle = present && obstacleOf(entries, present);
    const first = obstacle ? this.#firstBy(call.signal) : inOrder(entries)[0];
    return this.#stand(own, obstacle, listing, { first, ahead: () => entriesBefore(entries, present ?? own) });
  }

  #stand(
    { rank }: OwnEntry,
    obstacle: Obstacle<V3Entry> | undefined,
    { revision }: Header,
    about: Pick<Standing, 'first' | 'ahead' | 'position'>,
  ): Standing {
    this.#behind = obstacle && { obstacle, revision };
    if (obstacle) return { behind: obstacle.nearest, fencingToken: revision, ...about };
    if (this.#token === undefined || this.#held !== rank) this.#token = revision;
    this.#held = rank;
    return { behind: undefined, fencingToken: this.#token, ...about };
  }

  /** Returns a function that reads the first entry. Reads more keys if the first one belongs to another lock. */
  readonly #firstBy = (signal: Source | undefined) => async (): Promise<Entry | undefined> => {
    const { listings } = this.#requests;
    const call = { signal, attemptTimeout: HOLDER_WITHIN, timeout: HOLDER_WITHIN };
    const oldest = await listings.first(this.#path, { among: 1, onlyEntries: false, ...call });
    if (!oldest || isEntryOf(this.#path, oldest.key)) return oldest;
    return listings.first(this.#path, { among: MOST_NESTED, onlyEntries: true, ...call });
  };
}
