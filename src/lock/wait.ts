import createDebug from 'debug';
import { isTransient } from '../errors.ts';
import type { KeysApi } from '../keys/api.ts';
import { now } from '../timing.ts';

const debug = createDebug('etcd-v2-lock:watch');

/** Seconds a wait goes on without a sign of life. */
const LONGEST_WAIT = 20;

/** `event`: it changed; `silence`: nothing for a whole poll; `trouble`: the wait was cut short. Each means: read again. */
export type Woken = 'event' | 'silence' | 'trouble';

export interface WaitOptions {
  /** Index of the listing that showed the entry: whatever happened since is not missed. */
  readonly after: number;
  /** Seconds our own entry lives; null when it never expires. */
  readonly ttl: number | null;
  readonly signal: AbortSignal;
}

/** Waits until the key may have changed. An event says only that much: a python-etcd renewal is one, too. */
export async function changed(keys: KeysApi, key: string, { after, ttl, signal }: WaitOptions): Promise<Woken> {
  const timeout = Math.min((ttl ?? Number.POSITIVE_INFINITY) / 3, LONGEST_WAIT);
  const startedAt = now();
  try {
    if (await keys.watch(key, { after, timeout, signal })) return 'event';
    return now() - startedAt >= timeout * 1000 ? 'silence' : 'trouble';
  } catch (error) {
    if (!isTransient(error)) throw error;
    debug('watching %s: %s', key, error);
    return 'trouble';
  }
}
