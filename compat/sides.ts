import { Lock } from '../src/index.ts';
import { useClient } from '../test/support/locks.ts';
import type { Python, PythonAcquire, PythonState } from './python.ts';

export type Side = 'Node' | 'Python';

/** Both assignments of the languages to two roles, for `test.each`. */
export const BOTH_WAYS: readonly (readonly [Side, Side])[] = [
  ['Node', 'Python'],
  ['Python', 'Node'],
];

/** The operations a lock has in both languages. */
export interface EitherLock {
  acquire(options?: PythonAcquire): Promise<boolean>;
  release(): Promise<void>;
  isAcquired(): Promise<boolean>;
  setUuid(uuid: string): Promise<void>;
  state(): Promise<PythonState>;
  /** The queue as this language's own client reads it. */
  contenders(): Promise<readonly { readonly key: string; readonly value: string }[]>;
}

/** Returns a lock of that language on the shared server, with its own client. */
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

/** Returns the lock's key, or null where our getter throws: before the first acquire(), as the Python harness does. */
function keyOf(lock: Lock): string | null {
  try {
    return lock.lockKey;
  } catch {
    return null;
  }
}

export const directoryOf = (key: string): string => key.slice(0, key.lastIndexOf('/')) || '/';
