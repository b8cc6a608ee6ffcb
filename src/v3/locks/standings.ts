import type { Source } from '../../base/cancellation.ts';
import { claimOf, isAlone } from '../../recipe/entries/entry-value.ts';
import { lost } from '../../recipe/entries/lost.ts';
import { hedgeReadAfter } from '../../recipe/entries/timing.ts';
import { entriesBefore, type Obstacle, obstacleOf, onlyBehind } from '../../recipe/rules.ts';
import type { Entry, OwnEntry, Standing, StandingOptions } from '../../recipe/store.ts';
import type { Appended, Listing, Neighbours, V3Entry } from '../answers.ts';
import type { CallOptions, V3Client } from '../client.ts';
import { untilVacated } from './deletion.ts';
import { inOrder, isDirectly } from './reading.ts';
import { HOLDER_WITHIN } from './timing.ts';

/** Returns the error that says why the own entry is lost, if the answer shows that. */
export function whyLost(
  own: OwnEntry,
  { own: present, clusterId }: Pick<Neighbours, 'own' | 'clusterId'>,
): Error | undefined {
  if (clusterId !== own.clusterId) return lost(own, clusterId, '');
  if (!present) return lost(own, clusterId, 'its key is gone');
  if (present.rank !== own.rank || present.value !== own.value)
    return lost(own, clusterId, 'its key was re-created, or has another value');
  return undefined;
}

/** @throws the error that says why the own entry is lost, if the answer shows that */
export function checkPresent(own: OwnEntry, read: Pick<Neighbours, 'own' | 'clusterId'>): void {
  const why = whyLost(own, read);
  if (why) throw why;
}

/** Maximum number of the oldest keys among which the first entry is searched: others belong to locks whose names begin with this lock's. */
const MOST_NESTED = 100;

/** Reads where the own entry of one ticket stands in its queue. */
export class Standings {
  readonly #client: V3Client;
  readonly #path: string;
  /** The answer to the append. With it, the first standing needs no read. */
  #fresh: Appended | undefined;
  /** What the own entry waits for, and the revision of the read that showed it. */
  #behind: { readonly obstacle: Obstacle<V3Entry>; readonly revision: bigint } | undefined;
  /** Rank of the nearest entry in the last wait that ended with a change. */
  #changed: bigint | undefined;
  /** Whether the last wait ended by silence: its member may be down. */
  #wasSilent = false;
  /** The fencing token of the present hold, and the rank of its entry. A hold keeps its token. */
  #token: { readonly rank: bigint; readonly token: bigint } | undefined;

  /** @param path directory of the queue */
  constructor(client: V3Client, path: string) {
    this.#client = client;
    this.#path = path;
  }

  /** The fencing token of the present or last hold; undefined before the first. */
  get token(): bigint | undefined {
    return this.#token?.token;
  }

  /** Sets the answer to the last append; undefined: the answer is out of date. */
  appended(fresh: Appended | undefined): void {
    this.#fresh = fresh;
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
    const end = await untilVacated(this.#client, this.#path, obstacle, { since: revision, ttl, signal });
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
  async #behindOne(own: OwnEntry, fresh: Appended | undefined, call: CallOptions): Promise<Standing | undefined> {
    const known = fresh && !fresh.existed ? fresh : undefined;
    const neighbours = known ?? (await this.#client.requests.neighbours(own.key, own.rank, call));
    checkPresent(own, neighbours);
    const { before } = neighbours;
    if (!before) return this.#stand(own, undefined, neighbours, { first: undefined, position: 1 });
    if (!isDirectly(this.#path, before.key)) return undefined;
    return this.#stand(own, onlyBehind(before), neighbours, {
      first: this.#firstBy(call.signal),
      position: known?.count,
    });
  }

  async #inQueue(own: OwnEntry, fresh: Appended | undefined, call: CallOptions): Promise<Standing> {
    const { requests } = this.#client;
    const listing = fresh?.all ? { ...fresh, entries: fresh.all } : await requests.read(this.#path, call);
    const entries = listing.entries.filter(({ key }) => isDirectly(this.#path, key));
    const present = entries.find(({ key }) => key === own.key);
    checkPresent(own, { clusterId: listing.clusterId, own: present });
    const obstacle = present && obstacleOf(entries, present);
    const first = obstacle ? this.#firstBy(call.signal) : inOrder(entries)[0];
    return this.#stand(own, obstacle, listing, { first, ahead: () => entriesBefore(entries, present ?? own) });
  }

  #stand(
    { rank }: OwnEntry,
    obstacle: Obstacle<V3Entry> | undefined,
    { revision }: Neighbours | Listing,
    about: Pick<Standing, 'first' | 'ahead' | 'position'>,
  ): Standing {
    this.#behind = obstacle && { obstacle, revision };
    if (obstacle) return { behind: obstacle.nearest, fencingToken: revision, ...about };
    if (this.#token?.rank !== rank) this.#token = { rank, token: revision };
    return { behind: undefined, fencingToken: this.#token.token, ...about };
  }

  /** Returns a function that reads the first entry. Reads more keys if the first one belongs to another lock. */
  readonly #firstBy = (signal: Source | undefined) => async (): Promise<Entry | undefined> => {
    const { requests } = this.#client;
    const call = { signal, attemptTimeout: HOLDER_WITHIN, timeout: HOLDER_WITHIN };
    const isEntry = (key: string): boolean => isDirectly(this.#path, key);
    const oldest = await requests.first(this.#path, { count: 1, isEntry: () => true }, call);
    if (!oldest || isEntry(oldest.key)) return oldest;
    return requests.first(this.#path, { count: MOST_NESTED, isEntry }, call);
  };
}
