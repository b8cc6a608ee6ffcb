import type { FaultMember } from './fault-cluster.ts';
import type { Direction } from './link.ts';

/** What a line can lose without a reset. */
export const WAYS = ['both', 'requests', 'answers'] as const satisfies (Direction | 'both')[];

/** For those whom the faults of its line do not concern. */
export const direct = (member: FaultMember): FaultMember => ({ ...member, url: member.etcd.url });
