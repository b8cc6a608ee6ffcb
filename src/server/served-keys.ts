import type {
  Append,
  Change,
  CreateOptions,
  DeleteOptions,
  KeyEvent,
  KeysApi,
  SetOptions,
  WatchOptions,
} from '../v2/keys-api.ts';
import { type Exact, hasBytes } from '../v2/wire.ts';

/**
 * A store that the HTTP front can serve: calls of a {@link KeysApi} that accept all input that etcd accepts over HTTP. Locks do
 * not need all of it. Keys and values may contain bytes that are not UTF-8, each as a code unit from U+DC80 to U+DCFF.
 */
export interface ServedKeys extends Pick<KeysApi, 'clusterId' | 'get' | 'watch'> {
  /** Unlike other stores', the `signal` of a write ends it only before anything is written that could stay. */
  set(key: string, value: string | undefined, options?: Exact<SetOptions>): Promise<Change>;
  createInOrder(dir: string, value: string | undefined, options?: Exact<CreateOptions>): Promise<Append>;
  delete(key: string, options?: Exact<DeleteOptions>): Promise<Change>;
  /**
   * Yields events on the key until `signal` aborts. Ignores `timeout`. May end earlier: a bridge reports one event of an entry, and a
   * bridge to etcd v3 ends when etcd has compacted events.
   */
  stream(key: string, options?: WatchOptions): AsyncIterable<KeyEvent>;
}

/** The keys that each user of a server may use. */
export interface KeysOfUsers {
  /** Id of the cluster; undefined before its first answer. */
  readonly clusterId: string | undefined;
  /**
   * Runs `work` on the keys of the user that an `Authorization` header names.
   * @throws what `work` throws
   * @throws {Overloaded} if there are too many users
   */
  use<T>(authorization: string | undefined, work: (keys: ServedKeys) => Promise<T>): Promise<T>;
}

/** A request is refused because a limit of this server is reached; another server may carry it out. */
export class Overloaded extends Error {
  override readonly name = 'Overloaded';
}

/** A request is refused because its memory, or that of its answer, would exceed the budget of this process. */
export class OutOfMemory extends Overloaded {
  constructor() {
    super('limit of memory for requests, unread answers and polls reached: retry later, or use another server');
  }
}

/** Returns keys that everyone may use. */
export const forEveryone = (keys: ServedKeys): KeysOfUsers => ({
  get clusterId() {
    return keys.clusterId;
  },
  use: (_, work) => work(keys),
});

const BYTES = /[\udc80-\udcff]/gu;

/** Returns the key with U+FFFD for each byte that is not UTF-8. The argument checks of the client would refuse such bytes. */
export const checkable = (key: string): string => (hasBytes(key) ? key.replace(BYTES, '\ufffd') : key);

/** Returns the options with 2^53 - 1 in place of larger numbers. The argument checks of the client would refuse those. */
export const inSafeRange = (options: Exact<SetOptions>): SetOptions => ({
  ...(options as SetOptions),
  ...(typeof options.ttl === 'bigint' ? { ttl: Number.MAX_SAFE_INTEGER } : {}),
  ...(typeof options.prevIndex === 'bigint' ? { prevIndex: Number.MAX_SAFE_INTEGER } : {}),
});
