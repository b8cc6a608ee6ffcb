import { Scope } from '../../../src/base/cancellation.ts';
import { keepTrying, type PendingWork, type Running, stopped } from '../../../src/base/pending-work.ts';
import { type Deadline, now } from '../../../src/base/time.ts';
import { EtcdLockExpired } from '../../../src/errors.ts';
import { lost } from '../../../src/recipe/entries/lost.ts';
import { checkName } from '../../../src/recipe/option-checks.ts';
import { entriesBefore, type Obstacle, obstacleOf } from '../../../src/recipe/rules.ts';
import type {
  Entry,
  LeaveOptions,
  LockStore,
  MarkerStore,
  OwnEntry,
  Queue,
  QueueStore,
  StoreCall,
  Ticket,
} from '../../../src/recipe/store.ts';
import { parsed, type QueueSurveyor } from '../../../src/recipe/survey.ts';
import type { MemoryClient } from './memory-client.ts';

/** Queues of locks on the five requests of a {@link MemoryClient}: the shortest example of a store. */
export class MemoryLockStore implements LockStore {
  readonly surveyor: QueueSurveyor;
  readonly #client: MemoryClient;

  constructor(client: MemoryClient) {
    this.#client = client;
    this.surveyor = surveyorOf(client);
  }

  get clusterId(): string {
    return this.#client.clusterId;
  }

  get pending(): PendingWork {
    return this.#client.pending;
  }

  queue(lock: string): QueueStore {
    checkName('lock name', lock, 750);
    const path = `/${lock}`;
    return {
      path,
      ticket: (value) => ticketFor(this.#client, path, value),
      read: async (call = {}) => queueOf(await this.#client.read(path, call)),
      evict: ({ key, value }, call) => this.#client.remove(path, { key, value }, call),
    };
  }

  marker(lock: string): MarkerStore {
    checkName('lock name', lock, 750);
    const key = `ticks:${lock}`;
    const read = async (call: StoreCall) => (await this.#client.read(key, call))[0];
    return {
      key,
      read,
      advance: (options, call) => this.#client.advance(key, options, call),
      remove: async ({ value }, call) => {
        const [present] = await this.#client.read(key, call);
        if (present?.value !== value) return false;
        await this.#client.remove(key, { value }, call);
        return true;
      },
    };
  }

  async list(): Promise<ReadonlyMap<string, Queue>> {
    const entries = (await this.#client.read(undefined, {})).filter(({ path }) => path.startsWith('/'));
    const queueAt = (path: string): Queue => queueOf(entries.filter((entry) => entry.path === path));
    return new Map(entries.map(({ path }) => [path.slice(1), queueAt(path)]));
  }
}

/** Reads the whole queue again after each change of the store. */
const surveyorOf = (client: MemoryClient): QueueSurveyor => ({
  async lock(name, call = {}) {
    const { clusterId, version: index } = client;
    const path = `/${name}`;
    const entries = (await client.read(path, call)).map((entry) => parsed(name, entry));
    return { queue: { name, path, entries, ignored: [] }, index, clusterId };
  },
  async next({ index }, call) {
    await client.untilAfter(index, call);
    return undefined;
  },
});

const queueOf = (entries: readonly Entry[]): Queue => ({ entries, inOrder: () => entries });

/** Releases that are retried in the background, by queue and value. A later ticket for the same value ends them. */
const releases = new Map<string, Running>();

/** A value has at most one entry: an append may be repeated after a lost answer, and a removal needs no key. */
function ticketFor(client: MemoryClient, path: string, value: string): Ticket {
  const { clusterId, closed, pending } = client;
  const id = `${clusterId} ${path} ${value}`;
  let entry: OwnEntry | undefined;
  let last: OwnEntry | undefined;
  /** The queue right after the append. With it the first standing needs no read. */
  let appended: readonly Entry[] | undefined;
  /** What the last standing has shown. */
  let obstacle: Obstacle | undefined;

  const isOwn = (other: Entry): boolean => other.key === entry?.key && other.value === value;
  const loss = (): Error =>
    entry
      ? lost(entry, clusterId, 'its key is gone, or has another value')
      : new EtcdLockExpired(`${path} has no entry with the value ${value}`);

  const own = ({ key, rank }: Pick<Entry, 'key' | 'rank'>, granted: number | null, sentAt: number): OwnEntry => {
    last = { key, value, rank, clusterId, granted, sentAt };
    entry = last;
    return entry;
  };

  const renew = async (ttl: number | null, call: StoreCall): Promise<OwnEntry | undefined> => {
    const sentAt = now();
    const renewed = entry && (await client.renew(entry.key, value, ttl, call));
    return entry && renewed ? own(entry, ttl, sentAt) : undefined;
  };

  /** Removes the own entry, or leaves it to expire. Resolves to true. */
  const release = async (kept: OwnEntry | undefined, { signal, until }: LeaveOptions): Promise<boolean> => {
    if (!kept || !until || until.passed) await client.remove(path, { value }, { signal });
    else await client.renew(kept.key, value, Math.ceil(until.remaining / 1000), { signal, ending: closed });
    return true;
  };
  const releaseInBackground = (kept: OwnEntry | undefined, until: Deadline | undefined): void => {
    const stop = new Scope();
    let over = false;
    const attempt = async (): Promise<void> => {
      over = await release(kept, { signal: stop, until }).catch(() => closed.aborted);
    };
    const retries = keepTrying(() => !over, attempt, { most: 2, closing: pending.closing, signal: stop });
    const ended = retries.then(() => void releases.delete(id));
    releases.set(id, { ended, stop });
    pending.add(last?.key ?? path, ended);
  };

  return {
    path,
    value,
    get last() {
      return last;
    },
    async enter(ttl, call) {
      if (releases.has(id)) await this.leave(call);
      if (entry) {
        entry = await renew(ttl, call);
        return entry;
      }
      const sentAt = now();
      appended = await client.append(path, value, ttl, call);
      const found = appended.find((other) => other.value === value);
      return found && own(found, ttl, sentAt);
    },
    async find() {
      const found = (await client.read(path, {})).find((other) => other.value === value);
      if (!found || found.key === entry?.key) return found && entry;
      await stopped(releases.get(id));
      return own(found, null, Number.NEGATIVE_INFINITY);
    },
    async standing({ signal, latest }) {
      const entries = (!latest && appended) || (await client.read(path, { signal }));
      appended = undefined;
      const present = entries.find(isOwn);
      if (!present) throw loss();
      obstacle = obstacleOf(entries, present);
      return {
        behind: obstacle?.nearest,
        fencingToken: present.rank,
        first: entries[0],
        ahead: () => entriesBefore(entries, present),
      };
    },
    async changed(on, { signal }) {
      const over = new Scope(signal);
      const changes = (obstacle?.among ?? [on]).map((one) => client.changed(one.key, one.value, { signal: over }));
      await Promise.race(changes).finally(() => over.abort('one has changed'));
      await Promise.allSettled(changes);
      return true;
    },
    async renew(call) {
      const renewed = await renew(entry?.granted ?? null, call);
      if (!renewed) throw loss();
      return renewed;
    },
    async verify() {
      return (await client.read(path, {})).some(isOwn) ? undefined : loss();
    },
    async leave(call = {}) {
      const kept = entry;
      entry = undefined;
      await stopped(releases.get(id));
      await release(kept, call).catch((error) => {
        releaseInBackground(kept, call.until);
        throw error;
      });
    },
  };
}
