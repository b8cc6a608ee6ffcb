import createDebug from 'debug';
import { v4 } from 'uuid';
import {
  EtcdClusterIdChanged,
  EtcdCompareFailed,
  type EtcdException,
  EtcdKeyNotFound,
  EtcdLockExpired,
} from '../errors.ts';
import type { CallOptions, KeysApi, RenewOptions } from '../keys/api.ts';
import { sequenceOf } from '../keys/paths.ts';
import type { Source } from '../timing.ts';
import { parseValue } from './entry-value.ts';
import { type Contender, type Queue, queueOf } from './queue.ts';

const debug = createDebug('etcd-v2-lock:lock');

/** A key of ours in a queue, as of our last write to it. */
export interface Place {
  readonly key: string;
  /** Its value, which makes it ours. */
  readonly uuid: string;
  /** Its fencing token. */
  readonly sequence: bigint;
  readonly modifiedIndex: number;
  readonly clusterId: string | undefined;
  /** Seconds; null when it never expires. */
  readonly ttl: number | null;
  /** When the write that set its TTL was sent, in milliseconds on the monotonic clock: its expiry can only be later than that + TTL. */
  readonly sentAt: number;
}

/**
 * Seconds a member gets to queue an entry, or to set the TTL of one while we wait for it: one that loses its leader meanwhile
 * may never answer, or after 7, and nobody goes on while the entry is first in line and its owner does not know of it. With a
 * TTL above 6, two silent members take less than a poll's cap. Not so few that a slow cluster never does it.
 */
export const takingAttempt = (ttl: number | null): number =>
  Math.min(Math.max((ttl ?? Number.POSITIVE_INFINITY) / 9, 1), 2);

/** Seconds until another member is asked to remove one, too: others wait for it. */
const REMOVAL_PATIENCE = 0.5;

/** A fresh identity in python-etcd's form: 32 hex digits. */
export const freshUuid = (): string => v4().replaceAll('-', '');

/** A place just taken, and the queue as it was right after, where that is known. */
export interface Appended {
  readonly place: Place;
  readonly queue: Promise<Queue | undefined>;
}

export interface AttemptLimits {
  readonly signal: Source;
  /** Seconds. */
  readonly attemptTimeout: number;
}

/** Queues once. Never repeated here: when the outcome is unknown, the caller has to look for the uuid first. */
export async function append(
  keys: KeysApi,
  path: string,
  uuid: string,
  ttl: number | null,
  limits: AttemptLimits,
): Promise<Appended> {
  const { node, clusterId, sentAt, listing } = await keys.createInOrder(path, uuid, { ...limits, ttl, listing: true });
  debug('%s: queued as %s with ttl %s', path, node.key, ttl);
  const { key, modifiedIndex } = node;
  const place = { key, uuid, sequence: sequenceOf(key) ?? 0n, modifiedIndex, clusterId, ttl, sentAt };
  return { place, queue: listing.then((found) => found && queueOf(found)) };
}

export type RenewLimits = Pick<RenewOptions, 'signal' | 'attemptTimeout' | 'timeout'>;

/**
 * Moves the expiry on; never re-creates. Every attempt is bound to the index last known, so that one that is carried out
 * late cannot undo a later one.
 * @throws {EtcdLockExpired} when the key is gone or carries another value
 * @throws {EtcdClusterIdChanged} when another cluster answers
 */
export async function renew(
  keys: KeysApi,
  place: Place,
  ttl: number | null,
  { timeout, ...options }: RenewLimits,
): Promise<Place> {
  let current = place;
  for (;;) {
    try {
      const { key, uuid: prevValue, modifiedIndex: prevIndex } = current;
      const { node, clusterId, sentAt } = await keys.renew(key, { ...options, timeout, prevValue, prevIndex, ttl });
      if (clusterId !== place.clusterId) throw lost(place, clusterId, '');
      return { ...place, modifiedIndex: node.modifiedIndex, ttl, sentAt };
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) throw lost(place, keys.clusterId, 'its key is gone');
      if (!(error instanceof EtcdCompareFailed)) throw error;
    }
    // Changed since: by an attempt of ours whose answer was lost, by python-etcd's renewal, or by somebody else.
    const modifiedIndex = await indexIfOurs(keys, current, options);
    if (modifiedIndex === undefined) throw lost(place, keys.clusterId, 'its key is gone or carries another value');
    current = { ...current, modifiedIndex };
  }
}

/** Removes the key if it is still ours; resolves once it is surely not in the queue any more. */
export async function remove(
  keys: KeysApi,
  place: Pick<Place, 'key' | 'uuid' | 'modifiedIndex'>,
  options: CallOptions,
): Promise<void> {
  let prevIndex: number | undefined = place.modifiedIndex;
  while (prevIndex !== undefined) {
    try {
      const { signal, background, attemptTimeout = REMOVAL_PATIENCE } = options;
      await keys.delete(place.key, { signal, background, attemptTimeout, prevValue: place.uuid, prevIndex });
      debug('removed %s', place.key);
      return;
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) return;
      if (!(error instanceof EtcdCompareFailed)) throw error;
    }
    prevIndex = await indexIfOurs(keys, place, options);
  }
}

/** Somebody's entry taken over as ours; it has to be renewed before it counts. */
export const placeOf = (contender: Contender, clusterId: string | undefined): Place => ({
  key: contender.key,
  uuid: contender.value,
  sequence: contender.sequence,
  modifiedIndex: contender.modifiedIndex,
  clusterId,
  ttl: null,
  sentAt: Number.NEGATIVE_INFINITY,
});

/** Why a place is not ours any more. */
export function lost(place: Place, clusterId: string | undefined, why: string): EtcdException {
  if (clusterId !== place.clusterId)
    return new EtcdClusterIdChanged(`${place.key} was queued in cluster ${place.clusterId}, now ${clusterId} answers`);
  const { identity } = parseValue(place.uuid);
  const clash = identity === undefined ? '' : `; does another process have the identity ${JSON.stringify(identity)}?`;
  return new EtcdLockExpired(`${place.key} is lost: ${why}${clash}`);
}

async function indexIfOurs(
  keys: KeysApi,
  { key, uuid }: Pick<Place, 'key' | 'uuid'>,
  options: CallOptions,
): Promise<number | undefined> {
  try {
    const { node } = await keys.get(key, { ...options, quorum: true });
    return node.value === uuid ? node.modifiedIndex : undefined;
  } catch (error) {
    if (error instanceof EtcdKeyNotFound) return undefined;
    throw error;
  }
}
