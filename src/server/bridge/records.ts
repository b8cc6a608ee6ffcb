import { errorText } from '../../base/error-text.ts';
import { EtcdException } from '../../errors.ts';
import type { Served } from '../front/front.ts';

/** An event of a bridge, as a record for a log. */
export interface BridgeRecord {
  /**
   * `listening`: the bridge accepts connections. `etcd reachable`: etcd answers, for the first time or again. `etcd unreachable`:
   * no member could serve the last request or health check. `request`: a request was answered, or its client has hung up. `stopping`:
   * polls end, and no connections are accepted any more. `stopped`: all connections are closed.
   */
  readonly event: 'listening' | 'etcd reachable' | 'etcd unreachable' | 'request' | 'stopping' | 'stopped';
  /** Of `listening`: the URL for clients. */
  readonly url?: string;
  /**
   * Of `etcd unreachable` and `request`: the error. Absent for errors of etcd with a code below 300, because their text may contain a
   * key's value; except 110, missing permissions.
   */
  readonly error?: string;
  /** Of `request`: its method. */
  readonly method?: string;
  /** Of `request`: its URL, without the query. */
  readonly path?: string;
  /** Of `request`: the status of the answer. */
  readonly status?: number;
  /** Of `request`: the code of etcd's error, if it failed with one. */
  readonly code?: number;
  /** Of `request`: the time to answer it. */
  readonly seconds?: number;
  /** Of `request`: the IP address of the client, if it is still known. */
  readonly client?: string;
}

/**
 * Returns the record of a request. A query may contain the value of a key, so it is left out.
 * @internal
 */
export function requestRecord({ method, url, status, error, seconds, client }: Served): BridgeRecord {
  const [path = ''] = url.split('?', 1);
  const code = error instanceof EtcdException ? error.errorCode : undefined;
  const isShown = error !== undefined && (code === undefined || code === 110 || code >= 300);
  return {
    event: 'request',
    method,
    path,
    status,
    ...(code === undefined ? {} : { code }),
    ...(isShown ? { error: errorText(error) } : {}),
    seconds: Math.round(seconds * 1000) / 1000,
    ...(client === undefined ? {} : { client }),
  };
}
