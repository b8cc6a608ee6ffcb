import type { Held, HeldLocks, Lock } from '../../../src/index.ts';
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
 * Reads all that a hold tells.
 * @throws if it says that it is lost, but its signal does not
 */
export function lookAt(held: Held | HeldLocks): void {
  JSON.stringify(held);
  held.expiresIn();
  try {
    held.assertHeld();
  } catch (error) {
    if (!held.signal.aborted) throw new TypeError('a hold contradicts its signal', { cause: error });
  }
}
