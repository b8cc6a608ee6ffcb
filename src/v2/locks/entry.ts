import { v4 } from 'uuid';
import type { Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import {
  EtcdClusterIdChanged,
  EtcdCompareFailed,
  EtcdConnectionFailed,
  EtcdEventIndexCleared,
  type EtcdException,
  EtcdKeyNotFound,
  EtcdLockExpired,
} from '../../errors.ts';
import { parseValue } from '../../recipe/entry-value.ts';
import type { CallOptions, KeysApi, Node, RenewOptions } from '../keys-api.ts';
import { sequenceOf } from '../paths.ts';
import { type Contender, type Queue, queueOf } from './queue.ts';

const debug = createDebug('lock');

/** A key of ours in a queue, as of our last write to it. */
export interface Place {
  readonly key: string;
  /** Its value, which makes it ours. */
  readonly uuid: string;
  /** Its fencing token. */
  readonly sequence: bigint;
  readonly modifiedIndex: number;
  /** Changes where the key is made again. */
  readonly createdIndex: number;
  readonly clusterId: string | undefined;
  /** Seconds; null when it never expires. */
  readonly ttl: number | null;
  /** When the write that set its TTL was sent, in milliseconds on the monotonic clock: its expiry can only be later than that + TTL. */
  readonly sentAt: number;
}

/** Rounds after which an attempt gets no more time: a client's own limit is shorter by then. */
const MOST_DOUBLED = 3;

/**
 * Seconds a member gets to queue an entry, or to set the TTL of one while we wait for it: one that loses its leader meanwhile
 * may never answer, or after 7, and nobody goes on while the entry is first in line and its owner does not know of it. With a
 * TTL above 6, two silent members take less than a poll's cap. Doubled after each round in which no member answered in time.
 * @param failed how many rounds have failed so far
 */
export const takingAttempt = (ttl: number | null, failed: number): number =>
  Math.min(Math.max((ttl ?? Number.POSITIVE_INFINITY) / 9, 1), 2) * 2 ** Math.min(failed, MOST_DOUBLED);

/** Seconds until another member is asked to remove one, too: others wait for it. */
const REMOVAL_PATIENCE = 0.5;

/** Seconds to wait for an event of the past, which a member has at once unless it lags behind. */
const HISTORY = 1;

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
  const { key, modifiedIndex, createdIndex } = node;
  const place = { key, uuid, sequence: sequenceOf(key) ?? 0n, modifiedIndex, createdIndex, clusterId, ttl, sentAt };
  return { place, queue: listing.then((found) => found && queueOf(found)) };
}

export type RenewLimits = Pick<RenewOptions, 'signal' | 'attemptTimeout' | 'timeout'>;

/** What failed renewals of a place have found out: the place as it is now, or undefined where that has to be read first. */
const found = new WeakMap<Place, Place | undefined>();

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
  let current = found.has(place) ? found.get(place) : place;
  for (;;) {
    if (!current) {
      current = await present(keys, place, options);
      found.set(place, current);
    }
    try {
      const { key, uuid: prevValue, modifiedIndex: prevIndex } = current;
      const { node, clusterId, sentAt } = await keys.renew(key, { ...options, timeout, prevValue, prevIndex, ttl });
      if (clusterId !== place.clusterId) throw lost(place, clusterId, '');
      return { ...current, modifiedIndex: node.modifiedIndex, ttl, sentAt };
    } catch (error) {
      if (error instanceof EtcdKeyNotFound) throw lost(place, keys.clusterId, 'its key is gone');
      if (!(error instanceof EtcdCompareFailed)) throw error;
    }
    // Changed since: by an attempt of ours whose answer was lost, by python-etcd's renewal, or by somebody else.
    current = undefined;
    found.set(place, undefined);
  }
}

/**
 * Reads what has become of a place.
 * @throws {EtcdLockExpired} when it is not ours any more
 */
async function present(keys: KeysApi, place: Place, options: CallOptions): Promise<Place> {
  const node = await read(keys, place.key, options);
  if (!node || !(await isOurs(keys, place, node, options)))
    throw lost(place, keys.clusterId, 'its key is gone, was made again, or carries another value');
  return { ...place, modifiedIndex: node.modifiedIndex, createdIndex: node.createdIndex };
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
    const node = await read(keys, place.key, options);
    prevIndex = node?.value === place.uuid ? node.modifiedIndex : undefined;
  }
}

/** Somebody's entry taken over as ours; it has to be renewed before it counts. */
export const placeOf = (contender: Contender, clusterId: string | undefined): Place => ({
  key: contender.key,
  uuid: contender.value,
  sequence: contender.sequence,
  modifiedIndex: contender.modifiedIndex,
  createdIndex: contender.createdIndex,
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

/** What a key has now, read by quorum; undefined where it is gone. */
async function read(keys: KeysApi, key: string, options: CallOptions): Promise<Node | undefined> {
  try {
    return (await keys.get(key, { ...options, quorum: true })).node;
  } catch (error) {
    if (error instanceof EtcdKeyNotFound) return undefined;
    throw error;
  }
}

/**
 * Whether what a key has now is our entry, and was so all the time since our last write to it. Where the store's history does not
 * reach back that far, an entry that was made again since does not count as ours.
 */
export async function isOurs(
  keys: KeysApi,
  { key, uuid, createdIndex, modifiedIndex }: Place,
  now: Pick<Node, 'value' | 'createdIndex' | 'modifiedIndex'>,
  options: CallOptions,
): Promise<boolean> {
  if (now.value !== uuid) return false;
  // A stale listing may show less than we know.
  if (now.createdIndex === createdIndex || now.modifiedIndex <= modifiedIndex) return true;
  // python-etcd renews by a plain write, which makes the key again although it was never away.
  try {
    for (let after = modifiedIndex; after < now.createdIndex; ) {
      const event = await keys.watch(key, { ...options, after, timeout: HISTORY });
      if (!event) throw new EtcdConnectionFailed(`no history of ${key} within ${HISTORY} s`);
      if (event.node.value === undefined || !event.prevNode) return false;
      after = event.index;
    }
    return true;
  } catch (error) {
    if (error instanceof EtcdEventIndexCleared) return false;
    throw error;
  }
}
