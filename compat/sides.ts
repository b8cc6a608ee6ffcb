import { inject } from 'vitest';
import { Lock } from '../src/index.ts';
import { type RawEntry, useClient } from '../test/support/locks.ts';
import { until } from '../test/support/until.ts';
import type { Python, PythonAcquire, PythonState } from './python.ts';

export type Side = 'Node' | 'Python';

/** Both ways round, for `test.each`. */
export const BOTH_WAYS: readonly (readonly [Side, Side])[] = [
  ['Node', 'Python'],
  ['Python', 'Node'],
];

/** What a lock can do in either language. */
export interface EitherLock {
  acquire(options?: PythonAcquire): Promise<boolean>;
  release(): Promise<void>;
  isAcquired(): Promise<boolean>;
  setUuid(uuid: string): Promise<void>;
  state(): Promise<PythonState>;
  /** The queue as this language's own client reads it. */
  contenders(): Promise<readonly { readonly key: string; readonly value: string }[]>;
}

/** A lock on the shared server in that language, on a client of its own. */
export async function lockOn(side: Side, python: Python, name: string, lockPrefix = '/_locks'): Promise<EitherLock> {
  if (side === 'Python') return python.lock(name, { client: { lockPrefix } });
  return eitherLock(new Lock(useClient({ lockPrefix }), name));
}

function eitherLock(lock: Lock): EitherLock {
  return {
    acquire: (options) => lock.acquire(options),
    release: () => lock.release(),
    isAcquired: () => lock.isAcquired(),
    setUuid: (uuid) => lock.setUuid(uuid),
    contenders: async () => (await lock.contenders()).map(({ key, value }) => ({ key, value })),
    state: async () => ({ uuid: lock.uuid, isTaken: lock.isTaken, lockKey: keyOf(lock) }),
  };
}

/** Python's answer before the first place is None; here it is an error. */
function keyOf(lock: Lock): string | null {
  try {
    return lock.lockKey;
  } catch {
    return null;
  }
}

export const escaped = (path: string): string => path.split('/').map(encodeURIComponent).join('/');

/** The entries directly in a directory as etcd has them, in order; none where there is no directory. */
export async function entriesOf(directory: string): Promise<RawEntry[]> {
  const answer = await fetch(`${inject('etcd')}/v2/keys${escaped(directory)}?sorted=true&quorum=true`);
  const { node } = (await answer.json()) as { node?: { nodes?: (RawEntry & { dir?: boolean })[] } };
  return (node?.nodes ?? []).filter(({ dir }) => !dir);
}

/** Waits until that many entries are directly in the directory. */
export const untilEntries = (directory: string, count: number): Promise<RawEntry[]> =>
  until(
    () => entriesOf(directory),
    (entries) => entries.length === count,
  );

export const directoryOf = (key: string): string => key.slice(0, key.lastIndexOf('/')) || '/';
