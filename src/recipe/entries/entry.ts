/** A key in the queue of a lock. */
export interface Entry {
  /** Path of the key in etcd, such as `/_locks/file1/00000000000000000012`. */
  readonly key: string;
  /**
   * `[shared:|limit:<limit>:][id:<identity>:]<uuid>[@<label>[@<published>]]`: the mode or the limit of the entry, and the identity, uuid
   * and label of its owner.
   */
  readonly value: string;
  /** Order in the queue: a lower rank is served first. On etcd v2 the number in the key, on etcd v3 the revision that created it. */
  readonly rank: bigint;
  /**
   * Whole seconds left when the entry was read, rounded up on etcd v2 and down on v3. Undefined if the entry never expires, or if the
   * TTL was not read.
   */
  readonly ttl: number | undefined;
}

/**
 * Returns an id that is the same for both entries of a client on etcd v2 and v3: the value, because the keys differ. If the value
 * is empty, as with Go's Mutex, returns the key: such a client has an entry on only one of the two.
 */
export const sharedIdOf = ({ key, value }: Pick<Entry, 'key' | 'value'>): string => (value === '' ? key : value);
