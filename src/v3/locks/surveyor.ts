import { Scope, type Source } from '../../base/cancellation.ts';
import { Deadline } from '../../base/time.ts';
import { mayBeCarriedOut } from '../../errors.ts';
import { lockOfMarker, markerPrefix } from '../../recipe/entries/marker-key.ts';
import { longestSilence } from '../../recipe/entries/timing.ts';
import {
  type KeyChange,
  type LockQueue,
  type ParsedEntry,
  parsed,
  type QueueChange,
  type QueueSurvey,
  type QueuesSurvey,
  type ReadAt,
  type Removal,
  type SurveyOptions,
  type Surveyor,
} from '../../recipe/survey.ts';
import type { Header } from '../gateway/messages.ts';
import type { V3Entry } from '../rpc/entry.ts';
import { isEntryOf, keyPrefixOf } from '../rpc/keys.ts';
import type { LockRequests } from '../rpc/requests.ts';
import type { EntryChange } from '../rpc/watch-stream.ts';
import { checkLockName, inOrder, queuePath, queuesAmong } from './reading.ts';

/** Abort reason of a watch that has reported nothing for a long time. */
const SILENT = new Error('the watch was silent');

/** The queues of etcd v3, for observers and for the command line. */
export class V3Surveyor implements Surveyor {
  readonly #requests: LockRequests;
  readonly #lockPrefix: string;

  constructor(requests: LockRequests, lockPrefix: string) {
    this.#requests = requests;
    this.#lockPrefix = lockPrefix;
  }

  checkName(name: string): void {
    checkLockName(this.#lockPrefix, name);
  }

  /** Accepts any prefix: on etcd v3, a lock name may begin with any text. */
  checkPrefix(): void {}

  async lock(name: string, { ttls = true, signal }: SurveyOptions = {}): Promise<QueueSurvey> {
    const path = queuePath(this.#lockPrefix, name);
    const listing = await this.#requests.listings.read(path, { signal });
    const direct = listing.entries.filter(({ key }) => isEntryOf(path, key));
    const entries = ttls ? await this.#requests.leases.withTtls(direct, { signal }) : direct;
    return { queue: queueOf(name, path, entries), ...readAt(listing) };
  }

  async locks(prefix: string, { ttls = true, signal }: SurveyOptions = {}): Promise<QueuesSurvey> {
    const { listings, leases } = this.#requests;
    const start = keyPrefixOf(this.#lockPrefix);
    const listing = await listings.readPrefix(start + prefix, { signal });
    const entries = ttls ? await leases.withTtls(listing.entries, { signal }) : listing.entries;
    const queues = [...queuesAmong(start, entries)].filter(([name]) => name.startsWith(prefix));
    return { queues: queues.map(([name, of]) => queueOf(name, start + name, of)), ...readAt(listing) };
  }

  async next(
    survey: QueueSurvey,
    { ttls = true, signal }: SurveyOptions & { readonly signal: Source },
  ): Promise<readonly QueueChange[] | undefined> {
    const { path } = survey.queue;
    const ending = new Scope(signal).abortAt(Deadline.after(longestSilence(null)), () => SILENT);
    try {
      const from = BigInt(survey.index) + 1n;
      const events = await this.#requests.watches.events(`${path}/`, from, { signal: ending });
      if (!events || this.#requests.gateway.clusterId !== survey.clusterId) return undefined;
      return await this.#changesBy(events, survey, { ttls, signal });
    } catch (error) {
      if (error === SILENT) return undefined;
      throw error;
    } finally {
      ending.dispose();
    }
  }

  async nextChanges(
    lock: string | undefined,
    { index, clusterId }: ReadAt,
    { signal }: { readonly signal: Source },
  ): Promise<readonly KeyChange[] | undefined> {
    const { watches, gateway } = this.#requests;
    const start = keyPrefixOf(this.#lockPrefix);
    const watched = lock === undefined ? start : `${start}${lock}/`;
    const events = await watches.events(watched, BigInt(index) + 1n, { signal });
    if (gateway.clusterId !== clusterId) return undefined;
    return events?.map(({ key, revision, written }): KeyChange => {
      const change = { key, index: Number(revision) };
      if (!written) return { how: 'removed', ...change };
      const [name] = queuesAmong(start, [written]).keys();
      return { how: 'written', ...change, ...(name !== undefined && { entry: parsed(name, written) }) };
    });
  }

  async remove({ key, value, rank }: ParsedEntry): Promise<Removal> {
    const { entries } = this.#requests;
    try {
      const { isRemoved, sent } = await entries.remove(key, { value, rank }, {});
      if (isRemoved) return 'removed';
      const { own } = await entries.get(key, {});
      if (own) return 'changed';
      return sent > 1 ? 'absent' : 'gone';
    } catch (error) {
      if (!mayBeCarriedOut(error)) throw error;
      const { own } = await entries.get(key, {});
      if (!own) return 'absent';
      return own.value === value && own.rank === rank ? 'present' : 'changed';
    }
  }

  async markers(): Promise<ReadonlyMap<string, string>> {
    const { entries } = await this.#requests.listings.readPrefix(markerPrefix(this.#lockPrefix), {});
    return new Map(entries.map(({ key, value }) => [lockOfMarker(this.#lockPrefix, key), value]));
  }

  /** Removes nothing: etcd v3 has no directories, so unused locks leave nothing behind. Only checks that etcd answers. */
  // biome-ignore lint/correctness/useYield: there is nothing to yield.
  async *prune(): AsyncIterable<string> {
    await this.#requests.entries.get(keyPrefixOf(this.#lockPrefix), {});
  }

  /** Returns the queue after each event. An event of another lock, whose name begins with this one's, changes no entries. */
  async #changesBy(
    events: readonly EntryChange[],
    survey: QueueSurvey,
    { ttls, signal }: SurveyOptions,
  ): Promise<QueueChange[]> {
    const { name, path } = survey.queue;
    let { entries } = survey.queue;
    const changes: QueueChange[] = [];
    for (const { key: changed, revision, written } of events) {
      if (isEntryOf(path, changed)) {
        const others = entries.filter(({ key }) => key !== changed);
        const changedTo = written ? [written] : [];
        const added = ttls ? await this.#requests.leases.withTtls(changedTo, { signal }) : changedTo;
        entries = inOrder([...others, ...added.map((entry) => parsed(name, entry))]);
      }
      changes.push({ how: written ? 'written' : 'removed', entries, index: Number(revision) });
    }
    return changes;
  }
}

const readAt = ({ revision, clusterId }: Header): Pick<QueueSurvey, 'index' | 'clusterId'> => ({
  index: Number(revision),
  clusterId,
});

const queueOf = (name: string, path: string, entries: readonly V3Entry[]): LockQueue => ({
  name,
  path,
  entries: inOrder(entries).map((entry) => parsed(name, entry)),
  ignored: [],
});
