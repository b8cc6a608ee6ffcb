import { Scope } from '../cancellation.ts';
import { createDebug } from '../debug.ts';
import { EtcdWatchTimedOut } from '../errors.ts';
import { Deadline } from '../time.ts';
import type { Claim } from '../v2/locks/ticket.ts';

const debug = createDebug('lock');

/** Seconds a way out waits for its key to be removed, before that goes on in the background. */
const GRACE = 1;
/** The same where the caller has set a limit, which has passed. */
const LATE = 0.3;

/**
 * Gives the place up. Resolves within a moment: to nothing once the key is gone, else to why it could not be removed yet.
 * @param why it is given up, if by an error
 */
export async function leave(claim: Claim, why?: unknown): Promise<unknown> {
  const grace = why instanceof EtcdWatchTimedOut ? LATE : GRACE;
  const scope = new Scope().abortAt(Deadline.after(grace), () => new Error(`not removed within ${grace} s`));
  try {
    await claim.leave(scope);
    return undefined;
  } catch (error) {
    debug('%s: removal goes on in the background: %s', claim.path, error);
    return error;
  } finally {
    scope.dispose();
  }
}
