import type { InHand } from '../plan.ts';
import type { RequestMessage } from './message.ts';

/** What is awaited on its way to a process. */
export type Awaited = Exclude<InHand, 'anything'>;

/** Whether a request is one of these. */
export const REQUESTS: Readonly<Record<Exclude<Awaited, 'a message'>, (request: RequestMessage) => boolean>> = {
  'a removal': ({ method, path, body }) =>
    method === 'DELETE' || path.endsWith('/kv/deleterange') || body.includes('"request_delete_range"'),
  'an append': ({ method, path, body }) =>
    (method === 'POST' && path.startsWith('/v2/keys/')) || (isPut(body) && body.includes(IF_ABSENT)),
  'a rewrite': ({ method, body }) => method === 'PUT' || (isPut(body) && !body.includes(IF_ABSENT)),
};

/** Returns the key that a request of etcd v3 writes although it may exist; undefined if there is none. */
export function rewritten(body: string): string | undefined {
  if (body.includes(IF_ABSENT)) return undefined;
  const key = /"request_put":\{"key":"([\w+/=]+)"/.exec(body)?.[1];
  return key === undefined ? undefined : Buffer.from(key, 'base64').toString();
}

/** In a transaction of etcd v3: only if the key does not exist. */
const IF_ABSENT = '"create_revision":"0"';

const isPut = (body: string): boolean => body.includes('"request_put"');
