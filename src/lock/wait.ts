import createDebug from 'debug';
import { isTransient } from '../errors.ts';
import type { KeysApi } from '../keys/api.ts';
import { LONGEST_WAIT } from '../keys/requests.ts';
import { now, type Source } from '../timing.ts';

const debug = createDebug('etcd-v2-lock:watch');

/** Why the queue should be read again. */
export type Woken =
  | { readonly by: 'event'; readonly index: number }
  /** Nothing for a whole poll. */
  | { readonly by: 'silence' }
  /** The wait was cut short. */
  | { readonly by: 'trouble' };

export interface WaitOptions {
  /** Index of the listing that showed the entry: whatever happened since is not missed. */
  readonly after: number;
  /** Seconds our own entry lives; null when it never expires. */
  readonly ttl: number | null;
  readonly signal: Source;
}

/** Seconds within which a wait whose connection died silently goes on, the look at the queue included. */
const cap = (ttl: number | null): number => Math.min((ttl ?? Number.POSITIVE_INFINITY) / 3, LONGEST_WAIT);

/**
 * Seconds until another member is asked for the queue, should the one asked be silent. After a silent wait little is left of
 * the cap: the sooner another one is asked, the longer the wait can be.
 */
export const patience = (ttl: number | null, after: Woken['by']): number =>
  after === 'silence' ? Math.min(cap(ttl) / 8, 0.5) : Math.min(cap(ttl) / 2, 1);

/** Seconds a wait goes on without an event: then there is time to ask two members for the queue within the cap. */
const longest = (ttl: number | null): number => cap(ttl) - 2 * patience(ttl, 'silence');

/** Waits until the key may have changed. An event says only that much: a python-etcd renewal is one, too. */
export async function changed(keys: KeysApi, key: string, { after, ttl, signal }: WaitOptions): Promise<Woken> {
  const timeout = longest(ttl);
  const startedAt = now();
  try {
    const event = await keys.watch(key, { after, timeout, signal });
    if (event) return { by: 'event', index: event.index };
    return { by: now() - startedAt >= timeout * 1000 ? 'silence' : 'trouble' };
  } catch (error) {
    if (!isTransient(error)) throw error;
    debug('watching %s: %s', key, error);
    return { by: 'trouble' };
  }
}
