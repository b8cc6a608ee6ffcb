import type { FaultCluster, FaultMember } from './fault-cluster.ts';
import { roles } from './use-cluster.ts';

export interface Outage {
  /** Whether connections fail at once. A client then asks each member within milliseconds. */
  readonly isShown?: boolean;
  begin(): Promise<void>;
  end(): void;
}

type Act = (member: FaultMember) => unknown;

const on = (members: readonly FaultMember[], begin: Act, end: Act): Outage => ({
  async begin() {
    await Promise.all(members.map(begin));
  },
  end() {
    for (const member of members) end(member);
  },
});

const pause: Act = ({ etcd }) => etcd.pause();
const resume: Act = ({ etcd }) => etcd.resume();
const heal: Act = ({ proxy }) => proxy.heal();

/** Outages in which no write of a client succeeds. */
export const outages: Readonly<Record<string, (cluster: FaultCluster) => Outage | Promise<Outage>>> = {
  'connections to all members are refused': ({ members }) => ({
    ...on(
      members,
      ({ proxy }) => {
        proxy.refuse();
        proxy.cut();
      },
      heal,
    ),
    isShown: true,
  }),
  'all members are silently unreachable': ({ members }) => on(members, ({ proxy }) => proxy.blackHole('both'), heal),
  'all members are paused': ({ members }) => on(members, pause, resume),
  async 'the leader and another member are paused'(cluster) {
    const { leader, follower } = await roles(cluster);
    return on([leader, follower], pause, resume);
  },
};
