import { createDebug } from '../../base/debug.ts';
import { keepTrying } from '../../base/pending-work.ts';
import type { Deadline } from '../../base/time.ts';
import { REMOVE_EVERY } from '../../recipe/entries/timing.ts';
import type { V3Client } from '../client.ts';

const debug = createDebug('lease');

/**
 * Revokes a lease, which removes its entries. Retries until that succeeds, the deadline has passed, or the client is closed. Never
 * rejects.
 */
export async function endLease(client: V3Client, id: string, until: Deadline): Promise<void> {
  const { pending, requests, destroyed } = client;
  let isDone = false;
  const attempt = async (): Promise<void> => {
    try {
      await requests.revoke(id, { background: true });
      isDone = true;
    } catch (error) {
      debug('lease %s not revoked yet: %s', id, error);
    }
  };
  await attempt();
  const more = (): boolean => !isDone && !until.passed;
  await keepTrying(more, attempt, { most: REMOVE_EVERY, closing: pending.closing, signal: destroyed });
}
