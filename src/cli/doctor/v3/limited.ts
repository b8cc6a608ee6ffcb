import type { Deadline } from '../../../base/time.ts';
import type { CallOptions } from '../../../v3/client.ts';

/** Returns the options for a call that ends at the deadline, and makes a single attempt. */
export function limitedBy(deadline: Deadline): CallOptions {
  const timeout = Math.max(deadline.remaining, 1) / 1000;
  return { timeout, attemptTimeout: timeout, lane: 'read' };
}
