import type { Request } from '../tcp-proxy.ts';
import type { Purpose } from './store.ts';

interface Compare {
  readonly key: string;
  readonly create_revision?: string;
  readonly mod_revision?: string;
}

interface Operation {
  readonly request_put?: { readonly key: string; readonly lease?: string };
  readonly request_range?: { readonly key: string; readonly max_create_revision?: string };
  readonly request_delete_range?: { readonly key: string };
}

/** The messages of etcd's JSON gateway, as far as the requests of this package need them. */
interface Message {
  readonly ID?: string;
  readonly key?: string;
  readonly create_request?: { readonly key: string };
  readonly compare?: readonly Compare[];
  readonly success?: readonly Operation[];
}

const messageOf = ({ body }: Request): Message => {
  try {
    return JSON.parse(body) as Message;
  } catch {
    return {};
  }
};

export function purposeOf(request: Request): Purpose | undefined {
  if (request.path.endsWith('/watch')) return 'poll';
  if (request.path.endsWith('/lease/keepalive')) return 'renewal';
  if (isDeletion(request)) return 'removal';
  if (!request.path.endsWith('/kv/txn')) return undefined;
  const { compare = [], success = [] } = messageOf(request);
  if (compare.some((one) => one.create_revision === '0')) return 'append';
  if (success.some((one) => one.request_delete_range)) return 'removal';
  return success.some((one) => one.request_range?.max_create_revision) ? 'listing' : undefined;
}

/** Whether the request deletes a key that no other entry can have. */
const isDeletion = ({ path }: Request): boolean => path.endsWith('/kv/deleterange');

/** Returns the keys that a request names. */
export function keysOf(request: Request): string[] {
  const { key, create_request: watched, success = [] } = messageOf(request);
  const keys = success.map((one) => (one.request_put ?? one.request_range ?? one.request_delete_range)?.key);
  return [key, watched?.key, ...keys].flatMap((one) =>
    one === undefined ? [] : Buffer.from(one, 'base64').toString(),
  );
}

/**
 * Whether the request reads this key to confirm a renewal. This package does so after each keep-alive that was answered, because
 * a leader that was stopped may keep alive a lease that is gone.
 */
export function confirms(request: Request, key: string): boolean {
  if (!request.path.endsWith('/kv/txn')) return false;
  const { compare, success = [] } = messageOf(request);
  const reads = success.every(({ request_range: range }) => range && range.max_create_revision === undefined);
  return compare === undefined && reads && keysOf(request).includes(key);
}

/** Returns the id of the lease that a request keeps alive or creates, if its answer says that the lease is there. */
export function renewedLease(request: Request): string | undefined {
  const isAnswered = /"TTL":"[1-9]/.test(request.answer ?? '');
  return isAnswered && /\/lease\/(keepalive|grant)$/.test(request.path) ? messageOf(request).ID : undefined;
}

/** Returns the term of the leader by which a request was answered; 0 if the answer has none. */
export const termOf = ({ answer = '' }: Request): number => Number(/"raft_term":"(\d+)"/.exec(answer)?.[1] ?? 0);

/** Whether the request removes the entry with this key and create revision, as it was written then or later, or ends its lease. */
export function asksToRemove(request: Request, key: string, created: bigint, lease: string | undefined): boolean {
  const { ID: id, compare = [], success = [] } = messageOf(request);
  if (request.path.endsWith('/lease/revoke')) return id === lease;
  if (isDeletion(request)) return keysOf(request).includes(key);
  const isBound = compare.some(
    ({ create_revision: to, mod_revision: written = '0' }) => to === String(created) || BigInt(written) >= created,
  );
  return isBound && success.some((one) => one.request_delete_range) && keysOf(request).includes(key);
}
