import type { Source } from '../../../src/base/cancellation.ts';
import type { ServedKeys } from '../../../src/server/served-keys.ts';
import type { MemoryStore } from '../../../src/server/store/memory.ts';
import type { Consensus } from './consensus.ts';
import { TimedOut } from './consensus.ts';
import type { Counts } from './counts.ts';
import type { LateWrites } from './late-writes.ts';
import type { Member } from './member.ts';
import type * as etcd from './server.ts';

type Arguments<K extends 'set' | 'createInOrder' | 'delete'> = Parameters<ServedKeys[K]>;

interface KeysOfMemberOptions {
  readonly consensus: Consensus<Member>;
  readonly counts: Counts;
  readonly late: LateWrites;
  readonly onRemoved: (key: string) => void;
}

/** The keys of etcd v2 at one member: it answers plain reads and waits from what it has applied, and proposes all others. */
export class KeysOfMember implements ServedKeys {
  readonly clusterId: string;
  readonly #etcd: typeof etcd;
  readonly #member: Member;
  readonly #consensus: Consensus<Member>;
  readonly #counts: Counts;
  readonly #late: LateWrites;
  readonly #onRemoved: (key: string) => void;

  constructor(server: typeof etcd, member: Member, { consensus, counts, late, onRemoved }: KeysOfMemberOptions) {
    this.#etcd = server;
    this.#member = member;
    this.#consensus = consensus;
    this.#counts = counts;
    this.#late = late;
    this.#onRemoved = onRemoved;
    this.clusterId = member.store.clusterId;
  }

  get: ServedKeys['get'] = async (key, options = {}) => {
    const { signal: _, ...rest } = options;
    if (options.quorum) await this.#propose(async () => undefined);
    else if (this.#consensus.isBehind(this.#member)) this.#counts.staleReads += 1;
    return this.#member.memory.get(key, rest);
  };

  set = (key: Arguments<'set'>[0], value: Arguments<'set'>[1], options: Arguments<'set'>[2] = {}) =>
    this.#write((memory, { signal: _, ...rest }) => memory.set(key, value, rest), options);

  createInOrder = (dir: string, value: string | undefined, options: Arguments<'createInOrder'>[2] = {}) =>
    this.#write((memory, { signal: _, ...rest }) => memory.createInOrder(dir, value, rest), options);

  delete = (key: string, options: Arguments<'delete'>[1] = {}) =>
    this.#write(async (memory, { signal: _, ...rest }) => {
      const removed = await memory.delete(key, rest);
      this.#onRemoved(key);
      return removed;
    }, options);

  watch: ServedKeys['watch'] = async (key, options) => {
    try {
      return await this.#member.memory.watch(key, options);
    } catch (error) {
      if (error instanceof this.#etcd.EtcdEventIndexCleared) this.#counts.clearedWatches += 1;
      throw error;
    }
  };

  stream: ServedKeys['stream'] = (key, options) => this.#member.memory.stream(key, options);

  /** The time in a write is that of the member that got it. */
  #write<O extends { readonly signal?: Source | undefined }, T>(
    write: (memory: MemoryStore, options: O) => Promise<T>,
    options: O,
  ): Promise<T> {
    const time = this.#member.process.wall();
    let isDone = false;
    return this.#propose((member) => {
      if (!isDone && options.signal?.aborted) this.#late.count();
      isDone = true;
      return member.clock.at(time, () => write(member.memory, options));
    });
  }

  async #propose<T>(apply: (member: Member) => Promise<T>): Promise<T> {
    const { store } = this.#member;
    try {
      return await this.#consensus.propose(this.#member, (member) => {
        const result = apply(member);
        result.catch(this.#etcd.ignore);
        return result;
      });
    } catch (error) {
      if (error instanceof TimedOut) throw this.#etcd.etcdError(300, error.message, store.index);
      throw error;
    }
  }
}
