import { checkBoolean, show } from '../base/checks.ts';
import { checkOptionNames, type OptionNames } from '../base/option-names.ts';
import { EtcdLockHeld } from '../errors.ts';
import { parseValue } from '../recipe/entries/entry-value.ts';
import { describeHolder, holderOf } from '../recipe/entries/holder.ts';
import { holdersAmong } from '../recipe/rules.ts';
import type { LockStore } from '../recipe/store.ts';
import { type LockInfo, lockInfo } from './query.ts';

/** Options of `LockManager.release`. */
export interface ReleaseOptions {
  /** The key of the entry to remove, as `query()` shows it. If neither `key` nor `uuid` is set: all entries that hold the lock. */
  readonly key?: string | undefined;
  /** The uuid of the entries to remove. python-etcd may have left several. Entries of Go's and Java's locks have none: use `key`. */
  readonly uuid?: string | undefined;
  /**
   * Whether to remove an entry that holds the lock. The next waiter then gets the lock at once, but the removed holder
   * continues to work until it notices the loss. Default false.
   */
  readonly force?: boolean | undefined;
}

const RELEASE_OPTIONS = { key: true, uuid: true, force: true } satisfies OptionNames<ReleaseOptions>;

/**
 * Removes the selected entries of a lock.
 * @throws {EtcdLockHeld} if one of them holds the lock when the queue is read and `force` is not set; then none is removed
 * @throws {TypeError | RangeError} for an invalid name or option, before anything is sent
 */
export async function releaseLock(store: LockStore, name: string, options: ReleaseOptions): Promise<LockInfo[]> {
  const queue = store.queue(name);
  checkOptionNames(options, RELEASE_OPTIONS);
  const { key, uuid, force = false } = options;
  checkSelector('key', key);
  checkSelector('uuid', uuid);
  checkBoolean('force', force);
  if (key !== undefined && uuid !== undefined) throw new TypeError('key and uuid must not both be set');
  const isSelected = (entry: { key: string; uuid: string }) =>
    key === undefined ? entry.uuid === uuid : entry.key === key;
  const selectsAll = key === undefined && uuid === undefined;
  if (selectsAll && !force)
    throw new TypeError(
      `force must be true to remove the entries of the holders of ${show(name)}. To release a lock that you hold, call held.release()`,
    );
  const entries = (await queue.read({ ttls: true }))
    .inOrder()
    .map((entry) => ({ entry, key: entry.key, ...parseValue(entry.value) }));
  const holders = holdersAmong(entries);
  const selected = selectsAll ? holders : entries.filter(isSelected);
  const held = selected.find((each) => holders.includes(each));
  if (held && !force) {
    const holder = holderOf(queue.path, held.entry);
    throw new EtcdLockHeld(`${describeHolder(holder)} holds ${show(name)}: set force: true to remove its entry`, {
      holder,
    });
  }
  for (const { entry } of selected) await queue.evict(entry, {});
  return selected.map(({ entry }) => lockInfo(name, entry));
}

function checkSelector(name: string, value: unknown): void {
  if (value === undefined) return;
  if (typeof value !== 'string') throw new TypeError(`${name} must be a string, got ${show(value)}`);
  if (value === '') throw new RangeError(`${name} must not be empty, got ""`);
}
