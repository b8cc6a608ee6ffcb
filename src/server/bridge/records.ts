import { errorText } from '../../error-text.ts';
import { EtcdException } from '../../errors.ts';
import type { Served } from '../front/front.ts';

/** Something that happened at a bridge. */
export type BridgeRecord =
  | { readonly event: 'listening'; readonly url: string }
  /** etcd answers: for the first time, or again. */
  | { readonly event: 'etcd reachable' }
  /** etcd does not answer. `error` says why, by member. */
  | { readonly event: 'etcd unreachable'; readonly error: string }
  | BridgeRequestRecord
  /** Polls end, and no connections are accepted any more. */
  | { readonly event: 'stopping' }
  | { readonly event: 'stopped' };

/** A request that has been answered, or whose client has hung up. */
export interface BridgeRequestRecord {
  readonly event: 'request';
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  /** Status of the answer. */
  readonly status: number;
  /** Code of etcd's error, if it has one. */
  readonly code?: number;
  /** Why it failed, unless the client is to blame: such an error may contain the value of a key. */
  readonly error?: string;
  readonly seconds: number;
  /** IP address of the client, if it is still known. */
  readonly client?: string;
}

/** Returns the record of a request. A query may contain the value of a key, so it is left out. */
export function requestRecord({ method, url, status, error, seconds, client }: Served): BridgeRequestRecord {
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
