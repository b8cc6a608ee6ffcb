import type { KeyEvent, KeysApi, WatchOptions } from '../keys/api.ts';

/** A store the HTTP front can serve: a {@link KeysApi} with streams, which the locks do not need. */
export interface ServedKeys extends KeysApi {
  /** Yields every event on the key until the signal aborts. `timeout` does not apply. */
  stream(key: string, options?: WatchOptions): AsyncIterable<KeyEvent>;
}
