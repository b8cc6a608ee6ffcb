import type { Deadline } from '../../../base/time.ts';
import type { GatewayCall } from '../../../v3/gateway/gateway.ts';

/** Returns the options for a call that ends at the deadline, and makes a single attempt. */
export function limitedBy(deadline: Deadline): GatewayCall {
  const timeout = Math.max(deadline.remaining, 1) / 1000;
  return { timeout, attemptTimeout: timeout, lane: 'read' };
}
