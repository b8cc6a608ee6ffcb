import type { LockMode } from '../recipe/entry-value.ts';
import type { KeysApi } from '../v2/keys-api.ts';
import { holdersAmong, type LockQueue, type QueueEntry, surveyLock, surveyLocks } from './survey.ts';

/** One entry in the queue of a lock. */
export interface LockInfo {
  readonly name: string;
  readonly mode: LockMode;
  readonly uuid: string;
  /** What the process that queued it calls itself, if anything. */
  readonly identity: string | undefined;
  readonly key: string;
  /** Seconds until it expires unless renewed; undefined when it never does. */
  readonly ttl: number | undefined;
}

export interface LockManagerSnapshot {
  readonly held: readonly LockInfo[];
  readonly pending: readonly LockInfo[];
}

/**
 * Reads, by quorum, the queue of one lock or of all below the prefix.
 * @throws {TypeError | RangeError} for a bad name, before any request
 */
export async function queryLocks(keys: KeysApi, name: string | undefined): Promise<LockManagerSnapshot> {
  const queues = name === undefined ? (await surveyLocks(keys)).queues : [(await surveyLock(keys, name)).queue];
  const split = queues.map(splitUp);
  return { held: split.flatMap(({ held }) => held), pending: split.flatMap(({ pending }) => pending) };
}

function splitUp({ entries }: LockQueue): LockManagerSnapshot {
  const infos = entries.map(infoOf);
  const held = holdersAmong(infos);
  return { held, pending: infos.slice(held.length) };
}

const infoOf = ({ name, mode, uuid, identity, key, ttl }: QueueEntry): LockInfo => ({
  name,
  mode,
  uuid,
  identity,
  key,
  ttl,
});
