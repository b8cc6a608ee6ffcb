import { type Bytes, isIn, type KeyRange } from '../bytes.ts';
import * as errors from '../errors.ts';
import type { KeyValue } from '../messages.ts';
import { type Change, History } from './history.ts';
import { LiveKeys } from './live-keys.ts';

/** What {@link KeyValues} tells of its keys. */
export interface KeyValuesOptions {
  /** Number of changes to keep. */
  readonly history: number;
  /** Called for each key that is written with another lease than before, or removed. */
  readonly onLease: (key: Bytes, before: bigint, after: bigint) => void;
  /** Called with the changes of each revision. */
  readonly onChanges: (revision: bigint, changes: readonly Change[]) => void;
}

/** What a read finds. */
export interface Found {
  /** In the order of the keys. */
  readonly kvs: readonly KeyValue[];
  /** Number of keys in the range, whatever the limit. */
  readonly count: number;
}

/** The keys of etcd v3, with their past: each write makes the next revision of the whole store. */
export class KeyValues {
  readonly #options: KeyValuesOptions;
  readonly #live = new LiveKeys();
  readonly #history: History;
  /** The changes of the write that is under way. */
  #pending: readonly Change[] = [];

  constructor(options: KeyValuesOptions) {
    this.#options = options;
    this.#history = new History(options.history);
  }

  get revision(): bigint {
    return this.#history.revision;
  }

  get compacted(): bigint {
    return this.#history.compacted;
  }

  get(key: Bytes): KeyValue | undefined {
    return this.#live.get(key);
  }

  /**
   * Reads a range.
   * @param at the revision to read; 0 or less: the present one
   * @throws {EtcdV3Refusal} if the revision is in the future, or was compacted
   */
  range(range: KeyRange, at: bigint, limit?: number): Found {
    if (at > 0n) this.checkReadable(at);
    const isPast = at < this.revision || this.#pending.length > 0;
    if (at > 0n && isPast) return this.#past(range, at, limit);
    return { kvs: this.#live.range(range, limit), count: this.#live.count(range) };
  }

  /** Returns the number of keys that a range contains now. */
  count(range: KeyRange): number {
    return this.#live.count(range);
  }

  /**
   * @param at a revision; 0: the present one. Others below the first one count as compacted
   * @throws {EtcdV3Refusal} if the revision is in the future, or was compacted
   */
  checkReadable(at: bigint): void {
    if (at > this.revision) throw errors.futureRevision();
    if (at !== 0n && at < this.compacted) throw errors.compacted();
  }

  /** Returns the changes of each revision from `revision` on. @throws {EtcdV3Refusal} if they were compacted */
  since(revision: bigint, limit: number): readonly (readonly Change[])[] {
    return this.#history.since(revision, limit);
  }

  /** @throws {EtcdV3Refusal} if the revision is in the future, or was compacted already */
  compact(revision: bigint): void {
    if (revision > this.revision) throw errors.futureRevision();
    if (revision <= this.compacted) throw errors.compacted();
    this.#history.compact(revision);
  }

  /** Carries out writes that together make one revision; none, if they change nothing. */
  write<T>(work: (write: Write) => T): T {
    const changes: Change[] = [];
    this.#pending = changes;
    const result = work(new Write(this.#live, this.revision, changes));
    this.#pending = [];
    if (changes.length > 0) this.#commit(changes);
    return result;
  }

  #commit(changes: readonly Change[]): void {
    this.#history.add(changes);
    for (const { kv, previous } of changes)
      if (kv.lease !== previous?.lease) this.#options.onLease(kv.key, previous?.lease ?? 0n, kv.lease);
    this.#options.onChanges(this.revision, changes);
  }

  #past(range: KeyRange, at: bigint, limit?: number): Found {
    const kvs = new Map(this.#live.range(range).map((kv) => [kv.key, kv]));
    for (const changes of [...this.#history.since(at + 1n), this.#pending].toReversed())
      for (const { kv, previous } of changes.toReversed())
        if (previous) {
          if (isIn(range, kv.key)) kvs.set(kv.key, previous);
        } else kvs.delete(kv.key);
    const sorted = [...kvs.values()].sort((one, other) => (one.key < other.key ? -1 : 1));
    return { kvs: sorted.slice(0, limit), count: sorted.length };
  }
}

/** Writes that together make one revision. */
export class Write {
  readonly #live: LiveKeys;
  /** The revision before these writes. */
  readonly #before: bigint;
  readonly #changes: Change[];

  constructor(live: LiveKeys, before: bigint, changes: Change[]) {
    this.#live = live;
    this.#before = before;
    this.#changes = changes;
  }

  /** The revision of the store after the writes until now. */
  get revision(): bigint {
    return this.#changes.length > 0 ? this.#before + 1n : this.#before;
  }

  put(key: Bytes, value: Bytes, lease: bigint): void {
    const previous = this.#live.get(key);
    const revision = this.#before + 1n;
    const kv = {
      key,
      create_revision: previous?.create_revision ?? revision,
      mod_revision: revision,
      version: (previous?.version ?? 0n) + 1n,
      value,
      lease,
    };
    this.#live.set(kv);
    this.#changes.push({ kv, previous, isRemoval: false });
  }

  /** Returns the removed keys. */
  delete(range: KeyRange): readonly KeyValue[] {
    const removed = this.#live.range(range);
    for (const previous of removed) {
      this.#live.delete(previous.key);
      this.#changes.push({ kv: tombstone(previous.key, this.#before + 1n), previous, isRemoval: true });
    }
    return removed;
  }
}

const tombstone = (key: Bytes, revision: bigint): KeyValue => ({
  key,
  create_revision: 0n,
  mod_revision: revision,
  version: 0n,
  value: '',
  lease: 0n,
});
