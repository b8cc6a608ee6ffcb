import type { Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { EtcdCompareFailed, EtcdConnectionFailed, EtcdEventIndexCleared, EtcdKeyNotFound } from '../../errors.ts';
import { lost } from '../../recipe/lost.ts';
import type { OwnEntry } from '../../recipe/store.ts';
import type { CallOptions, KeysApi, Node, RenewOptions } from '../keys-api.ts';
import { sequenceOf } from '../paths.ts';
import { listingOf, type V2Entry, V2Queue } from './reading.ts';
import { HEDGE_REMOVAL_AFTER, HISTORY_TIMEOUT } from './timing.ts';

const debug = createDebug('lock');

/** An entry of this process on etcd v2. */
export interface V2OwnEntry extends OwnEntry {
  /** Of the last write. */
  readonly modifiedIndex: number;
  /** Changes when the key is created anew. */
  readonly createdIndex: number;
}

/** An entry just appended, and the queue right after, if the append was followed by a listing. */
export interface Appended {
  readonly entry: V2OwnEntry;
  readonly queue: Promise<V2Queue | undefined>;
}

export interface AttemptLimits {
  readonly signal?: Source | undefined;
  /** Seconds. */
  readonly attemptTimeout: number;
}

/** Appends once. When the outcome is unknown, the caller has to look for the value before it appends again. */
export async function append(
  keys: KeysApi,
  path: string,
  value: string,
  ttl: number | null,
  limits: AttemptLimits,
): Promise<Appended> {
  const { node, clusterId, sentAt, listing } = await keys.createInOrder(path, value, { ...limits, ttl, listing: true });
  debug('%s: queued as %s with ttl %s', path, node.key, ttl);
  const { key, modifiedIndex, createdIndex } = node;
  const rank = sequenceOf(key) ?? 0n;
  const entry = { key, value, rank, modifiedIndex, createdIndex, clusterId, granted: ttl, sentAt };
  return { entry, queue: listing.then((found) => found && new V2Queue(listingOf(found))) };
}

/** What failed renewals of an entry have found out: the entry as it is now, or undefined if that has to be read first. */
const found = new WeakMap<V2OwnEntry, V2OwnEntry | undefined>();

/**
 * Renews an entry; never creates one. Each attempt is bound to the last known index, so that one that is carried out late
 * cannot undo a later one.
 * @throws {EtcdLockExpired} when the entry is gone, or is no longer the same
 * @throws {EtcdClusterIdChanged} when another cluster answers
 */
export async function renew(
  keys: KeysApi,
  own: V2OwnEntry,
  ttl: number | null,
  { timeout, ...options }: Pick<RenewOptions, 'signal' | 'attemptTimeout' | 'timeout'>,
): Promise<V2OwnEntry> {
  let current = found.has(own) ? found.get(own) : own;
  for (;;) {
    if (!current) {
      current = await reread(keys, own, options);
      found.set(own, current);
    }
    try {
      const { key, value: prevValue, modifiedIndex: prevIndex } = current;
      const { node, clusterId, sentAt } = await keys.renew(key, { ...options, timeout, prevValue, prevIndex, ttl });
      if (clusterId !== own.clusterId) throw lost(own, clusterId, '');
      return { ...current, modifiedIndex: node.modifiedIndex, granted: ttl, sentAt };
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) throw lost(own, keys.clusterId, 'its key is gone');
      if (!(error instanceof EtcdCompareFailed)) throw error;
    }
    // Written since: by a renewal of ours whose answer was lost, by python-etcd's renewal, or by somebody else.
    current = undefined;
    found.set(own, undefined);
  }
}

/** @throws {EtcdLockExpired} when the entry is gone, or is no longer the same */
async function reread(keys: KeysApi, own: V2OwnEntry, options: CallOptions): Promise<V2OwnEntry> {
  const node = await read(keys, own.key, options);
  if (!node || !(await isUnbroken(keys, own, node, options)))
    throw lost(own, keys.clusterId, 'its key is gone, was made again, or carries another value');
  return { ...own, modifiedIndex: node.modifiedIndex, createdIndex: node.createdIndex };
}

/** Reads an entry by quorum. Resolves to the error that says why it is lost, if it is. */
export async function verify(keys: KeysApi, own: V2OwnEntry): Promise<Error | undefined> {
  try {
    const { node, clusterId } = await keys.get(own.key, { quorum: true });
    if (clusterId === own.clusterId && (await isUnbroken(keys, own, node, {}))) return undefined;
    return lost(own, clusterId, 'its key was made again, or carries another value');
  } catch (error) {
    if (!(error instanceof EtcdKeyNotFound)) throw error;
    return lost(own, keys.clusterId, 'its key is gone');
  }
}

/** Removes a key while it has this value. Resolves once it is certain that it is not in the queue with this value. */
export async function remove(
  keys: KeysApi,
  { key, value, modifiedIndex }: Pick<V2Entry, 'key' | 'value' | 'modifiedIndex'>,
  options: CallOptions,
): Promise<void> {
  let prevIndex: number | undefined = modifiedIndex;
  while (prevIndex !== undefined) {
    try {
      const { signal, background, attemptTimeout = HEDGE_REMOVAL_AFTER } = options;
      await keys.delete(key, { signal, background, attemptTimeout, prevValue: value, prevIndex });
      debug('removed %s', key);
      return;
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) return;
      if (!(error instanceof EtcdCompareFailed)) throw error;
    }
    const node = await read(keys, key, options);
    prevIndex = node?.value === value ? node.modifiedIndex : undefined;
  }
}

/** An entry found in the queue, taken over as our own. It has to be renewed before it counts. */
export const adopted = ({ ttl, ...entry }: V2Entry, clusterId: string | undefined): V2OwnEntry => ({
  ...entry,
  clusterId,
  granted: null,
  sentAt: Number.NEGATIVE_INFINITY,
});

/** Reads a key by quorum; undefined if it does not exist. */
async function read(keys: KeysApi, key: string, options: CallOptions): Promise<Node | undefined> {
  try {
    return (await keys.get(key, { ...options, quorum: true })).node;
  } catch (error) {
    if (error instanceof EtcdKeyNotFound) return undefined;
    throw error;
  }
}

/**
 * Whether a key still is our entry, and was so all the time since our last write. False if the key was created anew and the
 * store's history does not reach back far enough to show how.
 */
export async function isUnbroken(
  keys: KeysApi,
  { key, value, createdIndex, modifiedIndex }: V2OwnEntry,
  now: Pick<Node, 'value' | 'createdIndex' | 'modifiedIndex'>,
  options: CallOptions,
): Promise<boolean> {
  if (now.value !== value) return false;
  // A stale listing may show less than we know.
  if (now.createdIndex === createdIndex || now.modifiedIndex <= modifiedIndex) return true;
  // python-etcd renews with a plain write: that changes createdIndex although the key existed all the time.
  try {
    for (let after = modifiedIndex; after < now.createdIndex; ) {
      const event = await keys.watch(key, { ...options, after, timeout: HISTORY_TIMEOUT });
      if (!event) throw new EtcdConnectionFailed(`no history of ${key} within ${HISTORY_TIMEOUT} s`);
      if (event.node.value === undefined || !event.prevNode) return false;
      after = event.index;
    }
    return true;
  } catch (error) {
    if (error instanceof EtcdEventIndexCleared) return false;
    throw error;
  }
}
