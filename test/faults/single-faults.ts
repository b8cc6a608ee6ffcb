import { isAppend, isListing, isPoll, isRemoval, isRenewal } from './contest.ts';
import type { FaultMember } from './fault-cluster.ts';

export interface SingleFault {
  /** The member that it is about. */
  readonly of: 'leader' | 'follower';
  begin(member: FaultMember): unknown;
}

/** One fault of each kind. Other files inflict the same ones at every moment of a lock. */
export const SINGLE_FAULTS: Readonly<Record<string, SingleFault>> = {
  'the leader is killed': { of: 'leader', begin: ({ etcd }) => etcd.kill() },
  'the leader is paused': { of: 'leader', begin: ({ etcd }) => etcd.pause() },
  'a follower is isolated': { of: 'follower', begin: (member) => member.isolate() },
  'a member falls silent': { of: 'follower', begin: ({ proxy }) => proxy.blackHole('both') },
  'one answer of each kind is lost': {
    of: 'follower',
    begin({ proxy }) {
      for (const matches of [isAppend, isRenewal, isRemoval, isListing, isPoll]) void proxy.swallow(matches);
    },
  },
};
