import { Lock } from '../src/index.ts';
import { useClient } from '../test/support/locks.ts';
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

export const directoryOf = (key: string): string => key.slice(0, key.lastIndexOf('/')) || '/';
