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
