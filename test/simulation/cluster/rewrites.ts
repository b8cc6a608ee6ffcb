import type { V3Store } from '../../../src/server/v3/store/store.ts';
import { range } from '../../server/v3/requests.ts';

/** In a transaction of etcd v3: only if the key does not exist. */
export const IF_ABSENT = '"create_revision":"0"';

/** Returns the key that a request of etcd v3 writes although it may exist; undefined if there is none. */
export function rewritten(body: string): string | undefined {
  if (body.includes(IF_ABSENT)) return undefined;
  const key = /"request_put":\{"key":"([\w+/=]+)"/.exec(body)?.[1];
  return key === undefined ? undefined : Buffer.from(key, 'base64').toString();
}

/** Whether a write since that revision has created the key of an entry: it was gone. */
export function isCreatedSince(store: V3Store, revision: bigint, key: string): boolean {
  if (!key.startsWith('/_locks/')) return false;
  const [found] = store.range(range({ key })).kvs;
  return found !== undefined && found.create_revision > revision;
}
