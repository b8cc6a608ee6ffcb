import type { WireAnswer } from '../../src/v2/wire.ts';
import { httpAnswer } from './tcp-server.ts';

/** The cluster id in every scripted answer. */
export const CLUSTER = 'cdf818194e3a8c32';

export const ANSWER_HEADERS = { 'x-etcd-cluster-id': CLUSTER, 'x-etcd-index': '7' };

/** The node in etcd's answer for an entry of a queue. */
export const file = (key: string, fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  key,
  value: 'u1',
  modifiedIndex: 4,
  createdIndex: 4,
  ...fields,
});

export const got = (key: string, fields?: Record<string, unknown>) => ({ action: 'get', node: file(key, fields) });

/** etcd's error body. */
export const failed = (errorCode: number, message = 'refused', cause = '/x') => ({
  errorCode,
  message,
  cause,
  index: 6,
});

/** An answer as the decoder gets it; a body that is no string is encoded as JSON. */
export function wireAnswer(status: number, body: unknown, headers: WireAnswer['headers'] = ANSWER_HEADERS): WireAnswer {
  return { status, headers, body: typeof body === 'string' ? body : JSON.stringify(body), sentAt: 12.5 };
}

/** An answer as raw bytes for a socket. */
export function rawAnswer(status: number, body: unknown, headers: Record<string, string> = ANSWER_HEADERS): string {
  return httpAnswer(status, headers, typeof body === 'string' ? body : JSON.stringify(body));
}

export const versionBody = (cluster: string) => ({ etcdserver: '3.4.23', etcdcluster: cluster });
