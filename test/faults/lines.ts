import type { FaultMember } from './fault-cluster.ts';
import type { Direction } from './link.ts';

/** What a connection can lose without a reset. */
export const WAYS = ['both', 'requests', 'answers'] as const satisfies (Direction | 'both')[];

/** The member at its own URL, past the proxy: for contenders that the fault must not affect. */
export const direct = (member: FaultMember): FaultMember => ({ ...member, url: member.etcd.url });
