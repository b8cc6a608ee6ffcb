import { Scope, type Source } from '../../base/cancellation.ts';
import { Deadline } from '../../base/time.ts';
import { EtcdException } from '../../errors.ts';
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
import type { Listing, V3Entry } from '../answers.ts';
import type { V3Client } from '../client.ts';
import type { EntryChange } from '../requests.ts';
import { inOrder, isDirectly, queuesAmong, startOf } from './reading.ts';

/** Abort reason of a watch that has reported nothing for a long time. */
const SILENT = new Error('the watch was silent');

/** The queues of etcd v3, for observers and for the command line. */
export class V3Surveyor implements Surveyor {
  readonly #client: V3Client;

  constructor(client: V3Client) {
    this.#client = client;
  }

  checkName(name: string): void {
    this.#client.store.queue(name);
  }

  /** Accepts any prefix: on etcd v3, a lock name may begin with any text. */
  checkPrefix(): void {}

  async lock(name: string, { ttls = true, signal }: SurveyOptions = {}): Promise<QueueSurvey> {
    const { path } = this.#client.store.queue(name);
    const listing = await this.#client.requests.read(path, { signal });
    const direct = listing.entries.filter(({ key }) => isDirectly(path, key));
    const entries = ttls ? await this.#client.requests.withTtls(direct, { signal }) : direct;
    return { queue: queueOf(name, path, entries), ...readAt(listing) };
  }

  async locks(prefix: string, { ttls = true, signal }: SurveyOptions = {}): Promise<QueuesSurvey> {
    const { requests, lockPrefix } = this.#client;
    const start = startOf(lockPrefix);
    const listing = await requests.readPrefix(start + prefix, { signal });
    const entries = ttls ? await requests.withTtls(listing.entries, { signal }) : listing.entries;
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
      const events = await this.#client.requests.events(`${path}/`, from, { signal: ending });
      if (!events || this.#client.clusterId !== survey.clusterId) return undefined;
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
    const { requests, lockPrefix } = this.#client;
    const start = startOf(lockPrefix);
    const watched = lock === undefined ? start : `${start}${lock}/`;
    const events = await requests.events(watched, BigInt(index) + 1n, { signal });
    if (this.#client.clusterId !== clusterId) return undefined;
    return events?.map(({ key, revision, written }): KeyChange => {
      const change = { key, index: Number(revision) };
      if (!written) return { how: 'removed', ...change };
      const [name] = queuesAmong(start, [written]).keys();
      return { how: 'written', ...change, ...(name !== undefined && { entry: parsed(name, written) }) };
    });
  }

  async remove({ key, value, rank }: ParsedEntry): Promise<Removal> {
    const { requests } = this.#client;
    try {
      const { isRemoved, sent } = await requests.remove(key, { value, rank }, {});
      if (isRemoved) return 'removed';
      const { own } = await requests.get(key, {});
      if (own) return 'changed';
      return sent > 1 ? 'absent' : 'gone';
    } catch (error) {
      if (!(error instanceof EtcdException && error.outcomeUnknown)) throw error;
      const { own } = await requests.get(key, {});
      if (!own) return 'absent';
      return own.value === value && own.rank === rank ? 'present' : 'changed';
    }
  }

  /** Removes nothing: etcd v3 has no directories, so unused locks leave nothing behind. Only checks that etcd answers. */
  // biome-ignore lint/correctness/useYield: there is nothing to yield.
  async *prune(): AsyncIterable<string> {
    await this.#client.requests.get(startOf(this.#client.lockPrefix), {});
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
      if (isDirectly(path, changed)) {
        const others = entries.filter(({ key }) => key !== changed);
        const changedTo = written ? [written] : [];
        const added = ttls ? await this.#client.requests.withTtls(changedTo, { signal }) : changedTo;
        entries = inOrder([...others, ...added.map((entry) => parsed(name, entry))]);
      }
      changes.push({ how: written ? 'written' : 'removed', entries, index: Number(revision) });
    }
    return changes;
  }
}

const readAt = ({ revision, clusterId }: Listing): Pick<QueueSurvey, 'index' | 'clusterId'> => ({
  index: Number(revision),
  clusterId,
});

const parsedIn = (name: string, entries: readonly V3Entry[]): ParsedEntry[] =>
  inOrder(entries).map((entry) => parsed(name, entry));

const queueOf = (name: string, path: string, entries: readonly V3Entry[]): LockQueue => ({
  name,
  path,
  entries: parsedIn(name, entries),
  ignored: [],
});
