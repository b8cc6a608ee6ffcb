import { randomBytes } from 'node:crypto';
import { ignore, pause, Scope } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { errorText } from '../../error-text.ts';
import { EtcdException, EtcdInsufficientPermissions, EtcdLeaderElectionInProgress } from '../../errors.ts';
import { keepTrying } from '../../pending-work.ts';
import { Backoff, Deadline, now } from '../../time.ts';
import { etcdError } from '../../v2/error-codes.ts';
import type {
  Append,
  Change,
  CreateOptions,
  DeleteOptions,
  GetOptions,
  KeyEvent,
  Node,
  SetOptions,
  Snapshot,
  WatchOptions,
} from '../../v2/keys-api.ts';
import { isConditional } from '../../v2/requests.ts';
import type { Exact } from '../../v2/wire.ts';
import type { Made, V3Entry } from '../../v3/answers.ts';
import type { V3Client } from '../../v3/client.ts';
import { NotFound } from '../../v3/errors.ts';
import { untilDeleted } from '../../v3/locks/deletion.ts';
import { idOf } from '../../v3/locks/entry-id.ts';
import type { StoreEvent } from '../../v3/requests.ts';
import type { ServedKeys } from '../served-keys.ts';
import { type BridgedKey, bridged, nameOf, refused } from './target.ts';
import { directoryOf, nodeOf } from './tree.ts';

const debug = createDebug('bridge');

type EntryKey = Extract<BridgedKey, { kind: 'entry' }>;
type Found = Made & { readonly own: V3Entry };

/**
 * Which leases a bridge has made, for one entry each: the highest bits of their ids. Others may have further entries. This package's
 * own clients never choose such an id.
 */
const OWN_LEASES = 0x2b715cn;
const freshLease = (): string => String((OWN_LEASES << 40n) | BigInt(`0x${randomBytes(5).toString('hex')}`));
const isOwnLease = (lease: string | undefined): lease is string =>
  lease !== undefined && BigInt(lease) >> 40n === OWN_LEASES;

/** etcd's maximum TTL of a lease, in seconds. */
const LONGEST_TTL = 9_000_000_000;

/** How often a renewal is tried while the entry changes in between. */
const MOST_TRIES = 3;

/** Seconds for which a poll listens to a member that sends nothing before it asks again. */
const SILENCE = 20;
const SILENT = new Error('no event in time');

/** Seconds: the TTL of an entry that is about to be made one that never expires. */
const FIRST_TTL = 60;

/** Seconds for which a bridge tries to end a lease. It would also expire. */
const END_LEASES_FOR = 600;

/**
 * Locks on etcd v3 as the keys of etcd v2 that python-etcd's `Lock` uses. The entry with create revision 7 of the lock `name` is
 * `<lockPrefix>/<name>/00000000000000000007`, and an index is a revision. Keeps no state, so that any number of bridges serve the
 * same locks.
 */
export class BridgedKeys implements ServedKeys {
  readonly #client: V3Client;

  constructor(client: V3Client) {
    this.#client = client;
  }

  get clusterId(): string | undefined {
    return this.#client.clusterId;
  }

  get(key: string, { recursive = false, signal }: GetOptions = {}): Promise<Snapshot> {
    return translated(async () => {
      const at = this.#at(key);
      if (at.kind !== 'entry') return this.#list(at, recursive, { signal });
      const { own, revision } = await this.#find(at);
      const [withTtl = own] = await this.#client.requests.withTtls([own], { signal });
      return { ...this.#answer(), node: nodeOf(at.path, withTtl), index: Number(revision) };
    });
  }

  createInOrder(key: string, value = '', { ttl, dir, listing }: Exact<CreateOptions> = {}): Promise<Append> {
    return translated(async () => {
      const at = this.#at(key);
      if (at.kind !== 'queue' || dir) throw refused(`${key} cannot be created`);
      const seconds = secondsOf(ttl);
      // One value has one entry: python-etcd repeats a request whose answer was lost on the next member.
      const own = await this.#append(
        `${key}/${value === '' ? randomBytes(16).toString('hex') : idOf(value)}`,
        value,
        seconds,
      );
      const node = nodeOf(key, { ...own, ttl: seconds ?? undefined });
      const listed = listing ? await this.#list(at, true, {}) : undefined;
      return { ...this.#answer(), action: 'create', node, listing: Promise.resolve(listed) };
    });
  }

  /** Renews an entry. One that has expired is not created again. */
  set(key: string, value = '', options: Exact<SetOptions> = {}): Promise<Change> {
    return translated(async () => {
      const at = this.#at(key);
      if (at.kind !== 'entry' || options.dir || options.prevExist === false) throw refused(`${key} cannot be set`);
      const seconds = secondsOf(options.ttl);
      for (let tries = 1; ; tries += 1) {
        const { own, revision } = await this.#find(at);
        compare(own, options, revision);
        if (!options.refresh && value !== own.value) throw refused(`the value of ${key} cannot be changed`);
        const renewed = await this.#renew(own, seconds);
        if (renewed) {
          const node = nodeOf(at.path, { ...renewed, ttl: seconds ?? undefined });
          return { ...this.#answer(), action: actionOf(options), node, prevNode: nodeOf(at.path, own) };
        }
        if (tries === MOST_TRIES) throw etcdError(101, `${key} changes all the time`, Number(revision));
      }
    });
  }

  delete(key: string, options: Exact<DeleteOptions> = {}): Promise<Change> {
    return translated(async () => {
      const at = this.#at(key);
      if (at.kind !== 'entry') throw await this.#whyNotDeleted(at, key);
      const { own, revision: before } = await this.#find(at);
      compare(own, options, before);
      const { requests } = this.#client;
      const { isRemoved, revision } = await requests.remove(own.key, { value: own.value, rank: own.rank }, {});
      this.#endLease(own.lease);
      // Somebody else has removed it, unless an earlier request of this call has.
      if (!isRemoved) await this.#find(at);
      const prevNode = nodeOf(at.path, own);
      const node = removedNode(prevNode, revision);
      return { ...this.#answer(), action: isConditional(options) ? 'compareAndDelete' : 'delete', node, prevNode };
    });
  }

  watch(key: string, options: WatchOptions = {}): Promise<KeyEvent | undefined> {
    return translated(async () => {
      const at = this.#at(key);
      if (at.kind === 'entry') return this.#watchEntry(at, options);
      for await (const event of this.#eventsBelow(at, options)) return event;
      return undefined;
    });
  }

  async *stream(key: string, options: WatchOptions = {}): AsyncIterable<KeyEvent> {
    try {
      const at = this.#at(key);
      if (at.kind !== 'entry') yield* this.#eventsBelow(at, options);
      else {
        const event = await this.watch(key, options);
        if (event) yield event;
      }
    } catch (error) {
      throw inTermsOfV2(error);
    }
  }

  #at(key: string): BridgedKey {
    return bridged(key, this.#client.lockPrefix);
  }

  #answer(): Pick<Snapshot, 'clusterId' | 'sentAt'> {
    return { clusterId: this.clusterId, sentAt: now() };
  }

  async #list({ path }: BridgedKey, recursive: boolean, { signal }: GetOptions): Promise<Snapshot> {
    const { entries, revision } = await this.#client.requests.read(path, { signal });
    const index = Number(revision);
    return { ...this.#answer(), node: directoryOf(path, entries, recursive, index), index };
  }

  /** @throws {EtcdKeyNotFound} if the entry is gone */
  async #find({ path, rank }: EntryKey): Promise<Found> {
    const { own, ...made } = await this.#client.requests.createdAt(path, rank, {});
    if (own) return { ...made, own };
    throw etcdError(100, `${path}/${nameOf(rank)}`, Number(made.revision));
  }

  /** Creates an entry with a lease of its own. If it exists, renews it. */
  async #append(key: string, value: string, ttl: number | null): Promise<V3Entry> {
    for (;;) {
      // Always with a lease: a request that is carried out late, after the removal of the entry, must find that its lease is gone.
      const lease = await this.#grant(ttl ?? FIRST_TTL);
      const own = await this.#create(key, value, lease);
      const isNew = own.lease === lease;
      if (isNew && ttl !== null) return own;
      if (!isNew) this.#endLease(lease);
      if (own.value !== value) throw etcdError(105, `${key} has another value`, 0);
      // An older request with the same value may only prolong its entry: not put it on a lease that was granted long ago.
      const renewed = await this.#renew(own, ttl);
      if (renewed) return renewed;
    }
  }

  async #create(key: string, value: string, lease: string): Promise<V3Entry> {
    try {
      const { own } = await this.#client.requests.append(key, { value, lease, whole: false, unanswered: { count: 0 } });
      return own;
    } catch (error) {
      // Otherwise the entry may exist, or be created later, and its client may repeat the request at another bridge.
      if (error instanceof EtcdException && !error.outcomeUnknown) this.#endLease(lease);
      throw error;
    }
  }

  /** Gives an entry its TTL again, or another one. Resolves to undefined if the entry is not the same any more. */
  async #renew(own: V3Entry, ttl: number | null): Promise<V3Entry | undefined> {
    const { requests } = this.#client;
    if (isOwnLease(own.lease) && ttl !== null && (await requests.grantedTo(own.lease, {})) === ttl) {
      try {
        const { entries } = await requests.renew(own.lease, [own.key], {});
        const present = entries.get(own.key);
        return present?.rank === own.rank ? present : undefined;
      } catch (error) {
        if (error instanceof NotFound) return undefined;
        throw error;
      }
    }
    return this.#move(own, ttl === null ? undefined : await this.#grant(ttl));
  }

  /** Puts an entry on another lease, and ends the one that it had if a bridge made it. */
  async #move(own: V3Entry, lease: string | undefined): Promise<V3Entry | undefined> {
    const { value, rank, modified } = own;
    const { moved } = await this.#client.requests.move(own.key, { value, rank, modified, lease }, {});
    this.#endLease(moved === undefined ? lease : own.lease);
    return moved === undefined ? undefined : { ...own, lease, modified: moved };
  }

  async #grant(ttl: number): Promise<string> {
    const lease = freshLease();
    await this.#client.requests.grant(lease, ttl, {});
    return lease;
  }

  /** Ends a lease that a bridge made, in the background: it has no entry any more, so that it would also expire. */
  #endLease(lease: string | undefined): void {
    if (!isOwnLease(lease)) return;
    const { pending, destroyed, requests } = this.#client;
    const until = Deadline.after(END_LEASES_FOR);
    let isDone = false;
    const attempt = async (): Promise<void> => {
      try {
        await requests.revoke(lease, { background: true });
        isDone = true;
      } catch (error) {
        debug('lease %s not ended yet: %s', lease, error);
      }
    };
    const more = (): boolean => !isDone && !until.passed;
    const ended = attempt().then(() =>
      keepTrying(more, attempt, { most: 2, closing: pending.closing, signal: destroyed }),
    );
    pending.add(`lease ${lease}`, ended.catch(ignore));
  }

  async #whyNotDeleted({ path }: BridgedKey, key: string): Promise<Error> {
    const { entries, revision } = await this.#client.requests.read(path, {});
    return etcdError(entries.length === 0 ? 100 : 108, key, Number(revision));
  }

  /** Waits until the entry is gone, or has been written after the index. An entry that is gone never comes back. */
  async #watchEntry(at: EntryKey, { after, signal, started }: WatchOptions): Promise<KeyEvent | undefined> {
    const { requests } = this.#client;
    const backoff = new Backoff({ first: 100, most: 5000 });
    const rest = () => pause(backoff.next(), ...(signal ? [signal] : []));
    let hasBegun = false;
    let hasChanged = false;
    while (!signal?.aborted) {
      try {
        const { own, revision } = await requests.createdAt(at.path, at.rank, { signal });
        if (!hasBegun) started?.(Number(revision));
        hasBegun = true;
        if (!own)
          return this.#event(
            'delete',
            removedNode({ key: `${at.path}/${nameOf(at.rank)}`, createdIndex: Number(at.rank) }, revision),
          );
        if (after !== undefined && own.modified > BigInt(after)) return this.#event('set', nodeOf(at.path, own));
        // A watch has reported a removal, but the entry is still there: pause, in case that this goes on.
        if (hasChanged) await rest();
        const end = await untilDeleted(this.#client, own, { since: revision, ttl: null, signal });
        hasChanged = end === 'change';
        if (end === 'silence') backoff.reset();
        if (end === 'failure') await rest();
      } catch (error) {
        if (!hasBegun || signal?.aborted) throw error;
        debug('poll of %s: %s', at.path, error);
        await rest();
      }
    }
    return undefined;
  }

  /** Yields the changes of entries below a path, until those since the last one are no longer known. */
  async *#eventsBelow({ path }: BridgedKey, options: WatchOptions): AsyncGenerator<KeyEvent> {
    const { after, recursive, signal, started } = options;
    const { requests } = this.#client;
    const { revision } = await requests.get(path, { signal });
    let from = after === undefined ? revision + 1n : BigInt(after) + 1n;
    if (from <= revision && !(await requests.knowsSince(path, from, { signal })))
      throw etcdError(401, `the requested history has been cleared [${from}]`, Number(revision));
    started?.(Number(revision));
    for (;;) {
      const events = await this.#events(path, from, signal);
      if (!events) return;
      for (const event of events) {
        const change = this.#change(event);
        if (change && recursive) yield change;
        from = event.revision + 1n;
      }
    }
  }

  /** Resolves to no events if the member has sent nothing for long. */
  async #events(
    path: string,
    from: bigint,
    signal: WatchOptions['signal'],
  ): Promise<readonly StoreEvent[] | undefined> {
    const over = new Scope(signal).abortAt(Deadline.after(SILENCE), () => SILENT);
    try {
      return await this.#client.requests.events(`${path}/`, from, { signal: over });
    } catch (error) {
      if (error !== SILENT) throw error;
      return [];
    } finally {
      over.dispose();
    }
  }

  #change({ key, revision, written, previous }: StoreEvent): KeyEvent | undefined {
    const path = key.slice(0, key.lastIndexOf('/'));
    const entry = written ?? previous;
    if (!entry) return undefined;
    const node = nodeOf(path, entry);
    if (!written) return this.#event('delete', removedNode(node, revision));
    return this.#event(written.rank === revision ? 'create' : 'set', node);
  }

  #event(action: string, node: Node): KeyEvent {
    return { ...this.#answer(), action, node, index: node.modifiedIndex };
  }
}

const removedNode = ({ key, createdIndex }: Pick<Node, 'key' | 'createdIndex'>, revision: bigint): Node => ({
  key,
  dir: false,
  createdIndex,
  modifiedIndex: Number(revision),
  nodes: [],
});

const actionOf = (options: Exact<SetOptions>): string => {
  if (isConditional(options)) return 'compareAndSwap';
  return options.prevExist ? 'update' : 'set';
};

/** @throws {EtcdValueError} if etcd v3 has no such TTL */
function secondsOf(ttl: number | bigint | null | undefined): number | null {
  if (ttl === undefined || ttl === null) return null;
  if (ttl >= 1 && ttl <= LONGEST_TTL) return Number(ttl);
  throw etcdError(202, `on etcd v3 a TTL is from 1 to ${LONGEST_TTL} seconds, not ${ttl}`, 0);
}

/** @throws {EtcdCompareFailed} */
function compare(own: V3Entry, { prevValue, prevIndex }: Exact<DeleteOptions>, revision: bigint): void {
  const index = Number(revision);
  if (prevValue !== undefined && prevValue !== own.value) throw etcdError(101, `[${prevValue} != ${own.value}]`, index);
  if (prevIndex !== undefined && BigInt(prevIndex) !== own.modified)
    throw etcdError(101, `[${prevIndex} != ${own.modified}]`, index);
}

/** Runs a call. An error of etcd v3 becomes one of etcd v2, because their numbers mean other things. */
async function translated<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw inTermsOfV2(error);
  }
}

function inTermsOfV2(error: unknown): unknown {
  if (!(error instanceof EtcdException) || isOfV2(error)) return error;
  if (error instanceof EtcdInsufficientPermissions) return etcdError(110, errorText(error), 0);
  return etcdError(error instanceof EtcdLeaderElectionInProgress ? 301 : 300, errorText(error), 0);
}

/** Whether the error's number is one of etcd v2. gRPC's are below 20. */
const isOfV2 = ({ errorCode }: EtcdException): boolean => errorCode !== undefined && errorCode >= 100;
