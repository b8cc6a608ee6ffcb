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
 * A store the HTTP front can serve: a {@link KeysApi} that takes what etcd takes over HTTP, also where the locks do not
 * need it. Keys and values may have bytes that are not UTF-8, each as a code unit from U+DC80 to U+DCFF.
 */
export interface ServedKeys extends KeysApi {
  set(key: string, value: string | undefined, options?: Exact<SetOptions>): Promise<Change>;
  createInOrder(dir: string, value: string | undefined, options?: Exact<CreateOptions>): Promise<Append>;
  delete(key: string, options?: Exact<DeleteOptions>): Promise<Change>;
  /** Yields every event on the key until the signal aborts. `timeout` does not apply. */
  stream(key: string, options?: WatchOptions): AsyncIterable<KeyEvent>;
}

const BYTES = /[\udc80-\udcff]/gu;

/** A stand-in for a key with bytes that are not UTF-8, which the checks of {@link KeysApi} would refuse. */
export const checkable = (key: string): string => (hasBytes(key) ? key.replace(BYTES, '\ufffd') : key);

/** Stand-ins likewise for numbers beyond 2^53. */
export const inSafeRange = ({ ttl, prevIndex, ...rest }: Exact<SetOptions>): SetOptions => ({
  ...rest,
  ttl: typeof ttl === 'bigint' ? Number.MAX_SAFE_INTEGER : ttl,
  prevIndex: typeof prevIndex === 'bigint' ? Number.MAX_SAFE_INTEGER : prevIndex,
});
