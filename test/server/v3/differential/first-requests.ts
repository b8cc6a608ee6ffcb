import { expect } from 'vitest';
import type { Wanted } from './client.ts';
import { comparable } from './comparable.ts';
import type { Pair } from './pair.ts';
import { base64 } from './tree.ts';

const get = (path: string): Wanted => ({ method: 'GET', path });
const post = (path: string, message: object): Wanted => ({ method: 'POST', path, body: JSON.stringify(message) });

/** What only a server without a compaction answers so, and pages about the server. */
const REQUESTS: readonly Wanted[] = [
  get('/version'),
  get('/health'),
  post('/health', {}),
  post('/v3/maintenance/status', {}),
  post('/v3/auth/status', {}),
  post('/v3/kv/range', { key: 'AA==', range_end: 'AA==' }),
  post('/v3/kv/range', { key: 'AA==', revision: 1 }),
  post('/v3/kv/range', { key: 'AA==', revision: 2 }),
  post('/v3/kv/deleterange', { key: 'AA==', range_end: 'AA==' }),
  post('/v3/kv/txn', { success: [{ request_range: { key: 'AA==', revision: -1 } }] }),
  post('/v3/kv/txn', { success: [{ request_range: { key: 'AA==', revision: -2 } }] }),
  post('/v3/kv/compaction', { revision: -1 }),
  post('/v3/kv/compaction', {}),
  post('/v3/kv/compaction', {}),
  post('/v3/kv/compaction', { revision: 1 }),
  post('/v3/kv/compaction', { revision: 2 }),
  post('/v3/lease/leases', {}),
];

/** The key that `startEtcd()` writes on a server without the v2 API, to see whether it is ready. */
const READY = { key: base64('_ready') };

/** Expects the same answers from two servers without a compaction so far. */
export async function compareFirstRequests({ real, embedded }: Pair): Promise<void> {
  const { header } = await real.post('/v3/kv/range', READY);
  const { revision } = header as { readonly revision: string };
  for (let next = 2; next <= Number(revision); next += 1) await embedded.post('/v3/kv/put', READY);
  for (const wanted of REQUESTS) {
    const [theirs, ours] = await Promise.all([real.ask(wanted), embedded.ask(wanted)]);
    expect(comparable(ours), `${wanted.method} ${wanted.path} ${wanted.body}`).toEqual(comparable(theirs));
  }
}
