import createDebug from 'debug';
import { Deadline, Scope } from '../timing.ts';
import type { Claim } from './claim.ts';

const debug = createDebug('etcd-v2-lock:lock');

/** Seconds a way out waits for its key to be removed, before that goes on in the background. */
const GRACE = 1;

/** Gives the place up. Resolves within a moment: to nothing once the key is gone, else to why it could not be removed yet. */
export async function leave(claim: Claim): Promise<unknown> {
  const scope = new Scope().abortAt(Deadline.after(GRACE), () => new Error(`not removed within ${GRACE} s`));
  try {
    await claim.leave(scope.signal);
    return undefined;
  } catch (error) {
    debug('%s: removal goes on in the background: %s', claim.path, error);
    return error;
  } finally {
    scope.dispose();
  }
}
