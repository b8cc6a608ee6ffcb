import type { Source } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import {
  EtcdCompareFailed,
  EtcdConnectionFailed,
  EtcdEventIndexCleared,
  EtcdKeyNotFound,
  EtcdValueError,
} from '../../errors.ts';
import { lost } from '../../recipe/entries/lost.ts';
import { HEDGE_REMOVAL_AFTER } from '../../recipe/entries/timing.ts';
import type { KeysApi, KeysCall, Node, Renewed, RenewOptions } from '../keys-api.ts';
import { sequenceOf } from '../paths.ts';
import type { V2OwnEntry } from './entry.ts';
import { listingOf, readKey, type V2Entry, V2Queue } from './reading.ts';
import { HISTORY_TIMEOUT } from './timing.ts';

const debug = createDebug('lock');

export interface RequestLimits {
  readonly signal?: Source | undefined;
  /** Seconds. */
  readonly attemptTimeout: number;
}

/**
 * Appends an entry, without retries. If the outcome is unknown, search the queue for the value before another append. Also resolves to
 * the queue read right after the append; `queue` resolves to undefined if there was no such read.
 */
export async function append(
  keys: KeysApi,
  path: string,
  value: string,
  ttl: number | null,
  limits: RequestLimits,
): Promise<{ readonly own: V2OwnEntry; readonly queue: Promise<V2Queue | undefined> }> {
  const { node, clusterId, sentAt, listing } = await keys.createInOrder(path, value, { ...limits, ttl, listing: true });
  debug('%s: queued as %s with ttl %s', path, node.key, ttl);
  const { key, modifiedIndex, createdIndex } = node;
  const rank = sequenceOf(key) ?? 0n;
  const own = { key, value, rank, modifiedIndex, createdIndex, clusterId, granted: ttl, sentAt };
  return { own, queue: listing.then((found) => found && new V2Queue(listingOf(found))) };
}

/** Called with the entry whenever a write or a read has shown more about it. */
type OnUpdate = (own: V2OwnEntry) => void;

/**
 * Writes an entry again with the same TTL, so that watchers get an event. Never creates an entry.
 * @throws as {@link renew}
 */
export const announce = (keys: KeysApi, own: V2OwnEntry, options: KeysCall, onUpdate: OnUpdate): Promise<V2OwnEntry> =>
  rewrite(keys, own, own.granted, options, (key, write) => keys.set(key, write.prevValue, write), onUpdate);

/**
 * Renews an entry, without an event if the member supports that. Never creates an entry. Each attempt expects the last known index,
 * so that an attempt that the store carries out late cannot undo a newer one.
 * @throws {EtcdLockExpired} if the entry is gone, was re-created, or has another value
 * @throws {EtcdClusterIdChanged} if another cluster answers
 */
export const renew = (
  keys: KeysApi,
  own: V2OwnEntry,
  ttl: number | null,
  { timeout, ...options }: KeysCall & Pick<RenewOptions, 'timeout'>,
  onUpdate: OnUpdate,
): Promise<V2OwnEntry> =>
  rewrite(keys, own, ttl, options, (key, write) => keys.renew(key, { ...write, timeout }), onUpdate);

type Rewrite = KeysCall & { readonly prevValue: string; readonly prevIndex: number; readonly ttl: number | null };

async function rewrite(
  keys: KeysApi,
  own: V2OwnEntry,
  ttl: number | null,
  options: KeysCall,
  write: (key: string, options: Rewrite) => Promise<Renewed>,
  onUpdate: OnUpdate,
): Promise<V2OwnEntry> {
  let current = own;
  let compared: number | undefined;
  for (;;) {
    if (current.isOutdated) {
      current = await reread(keys, current, options);
      if (current.modifiedIndex === compared)
        throw new EtcdValueError(`${own.key} cannot be renewed: its value contains bytes that are not UTF-8`);
      onUpdate(current);
    }
    try {
      const { key, value: prevValue, modifiedIndex: prevIndex } = current;
      const { node, clusterId, sentAt, member } = await write(key, { ...options, prevValue, prevIndex, ttl });
      if (clusterId !== own.clusterId) throw lost(own, clusterId, '');
      const written = { ...current, modifiedIndex: node.modifiedIndex, granted: ttl, sentAt, member };
      onUpdate(written);
      return written;
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) throw lost(own, keys.clusterId, 'its key is gone');
      if (!(error instanceof EtcdCompareFailed)) throw error;
    }
    // The key was written since: by a renewal whose answer was lost, by python-etcd's renewal, or by another writer.
    compared = current.modifiedIndex;
    current = { ...current, isOutdated: true };
    onUpdate(current);
  }
}

/** @throws {EtcdLockExpired} if the entry is gone, was re-created, or has another value */
async function reread(keys: KeysApi, { isOutdated: _, ...own }: V2OwnEntry, options: KeysCall): Promise<V2OwnEntry> {
  const found = await readKey(keys, own.key, options);
  if (!found || !(await isUnbroken(keys, own, found.node, options)))
    throw lost(own, keys.clusterId, 'its key is gone, was re-created, or has another value');
  const { modifiedIndex, createdIndex } = found.node;
  return { ...own, modifiedIndex, createdIndex };
}

/** Reads an entry by quorum. Resolves to undefined, or to the error that says why the entry is lost. */
export async function verify(keys: KeysApi, own: V2OwnEntry): Promise<Error | undefined> {
  const found = await readKey(keys, own.key);
  if (!found) return lost(own, keys.clusterId, 'its key is gone');
  const { node, clusterId } = found;
  if (clusterId === own.clusterId && (await isUnbroken(keys, own, node, {}))) return undefined;
  return lost(own, clusterId, 'its key was re-created, or has another value');
}

/**
 * Whether etcd can compare an entry's value with this one, as it was read. etcd treats an empty value as a missing condition, and a value with bytes
 * that are not UTF-8 is read with U+FFFD in their place. Compare the index instead.
 */
export const isComparable = (value: string): boolean => value !== '' && !value.includes('\ufffd');

/** Removes a key if it has this value. Resolves once it is certain that the key no longer exists with this value in its cluster. */
export async function remove(
  keys: KeysApi,
  entry: Pick<V2Entry, 'key' | 'value' | 'modifiedIndex'> & Partial<Pick<V2OwnEntry, 'clusterId'>>,
  options: KeysCall,
): Promise<void> {
  const { key, value, modifiedIndex, clusterId } = entry;
  let prevIndex: number | undefined = modifiedIndex;
  while (prevIndex !== undefined) {
    try {
      const { signal, background, attemptTimeout = HEDGE_REMOVAL_AFTER } = options;
      const prevValue = isComparable(value) ? value : undefined;
      await keys.delete(key, { signal, background, attemptTimeout, prevValue, prevIndex });
      debug('removed %s', key);
      return;
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) return;
      if (!(error instanceof EtcdCompareFailed)) throw error;
    }
    const found = await readKey(keys, key, options);
    const isSame = found?.node.value === value && (clusterId ?? found.clusterId) === found.clusterId;
    prevIndex = isSame ? found.node.modifiedIndex : undefined;
  }
}

/**
 * Whether the key has been the own entry without a gap since its last write by this process. Also false if the key was
 * re-created, and the store's event history no longer reaches back to that write.
 */
export async function isUnbroken(
  keys: KeysApi,
  { key, value, createdIndex, modifiedIndex }: V2OwnEntry,
  now: Pick<Node, 'value' | 'createdIndex' | 'modifiedIndex'>,
  options: KeysCall,
): Promise<boolean> {
  if (now.value !== value) return false;
  // A stale listing may show the key as it was before the last write of this process.
  if (now.createdIndex === createdIndex || now.modifiedIndex <= modifiedIndex) return true;
  // python-etcd renews with a plain write: that changes createdIndex although the key existed all the time.
  try {
    for (let after = modifiedIndex; after < now.createdIndex; ) {
      const event = await keys.watch(key, { ...options, after, timeout: HISTORY_TIMEOUT });
      if (!event) throw new EtcdConnectionFailed(`no event history of ${key} within ${HISTORY_TIMEOUT} s`);
      if (event.node.value === undefined || !event.prevNode) return false;
      after = event.index;
    }
    return true;
  } catch (error) {
    if (error instanceof EtcdEventIndexCleared) return false;
    throw error;
  }
}
