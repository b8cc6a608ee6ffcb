/** A key in the queue of a lock. */
export interface Entry {
  /** Path of the key in etcd, such as `/_locks/file1/00000000000000000012`. */
  readonly key: string;
  /** `[shared:][id:<identity>:]<uuid>[@<label>]`: the mode of the entry, and the identity, uuid and label of its owner. */
  readonly value: string;
  /** Position in the queue: a lower rank is served first. On etcd v2 the number that names the key. */
  readonly rank: bigint;
  /** Whole seconds left when the entry was read, rounded up; undefined if it never expires. */
  readonly ttl: number | undefined;
}

/**
 * Returns what the entries of one client have in common on etcd v2 and v3, where their keys differ: the value. That of a client of
 * Go's Mutex is empty, and such a client is in one of the two only.
 */
export const sharedIdOf = ({ key, value }: Pick<Entry, 'key' | 'value'>): string => (value === '' ? key : value);
