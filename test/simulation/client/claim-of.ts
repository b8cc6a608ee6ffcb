import type { EtcdClient, Held, HeldLocks, Lock } from '../../../src/index.ts';
import type { Claim } from '../claim.ts';

/** Returns what a program reports of a hold of a manager. */
export const claimOf = ({ name: lock, mode, fencingTokens, key }: Held): Claim => ({
  lock,
  mode,
  tokens: { ...fencingTokens },
  key,
});

/** Returns what a program reports of a Lock that is held. */
export const claimOfLock = ({ name: lock, fencingTokens, lockKey: key }: Lock): Claim => ({
  lock,
  mode: 'exclusive',
  tokens: { ...fencingTokens },
  key,
});

/**
 * Reads all that a hold tells, and its client.
 * @throws if they contradict each other
 */
export function lookAt(held: Held, { lockPrefix, clusterId }: EtcdClient): void {
  if (!held.key.startsWith(`${lockPrefix}/${held.name}/`)) throw new TypeError(`a hold has the key ${held.key}`);
  if (clusterId === undefined) throw new TypeError('a client with a hold does not know its cluster');
  lookAtAll(held);
}

/**
 * Reads all that several holds tell.
 * @throws if they say that one is lost, but their signal does not
 */
export function lookAtAll(held: Held | HeldLocks): void {
  JSON.stringify(held);
  held.expiresIn();
  try {
    held.assertHeld();
  } catch (error) {
    if (!held.signal.aborted) throw new TypeError('a hold contradicts its signal', { cause: error });
  }
}
