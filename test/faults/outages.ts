import type { FaultCluster, FaultMember } from './fault-cluster.ts';
import { roles } from './use-cluster.ts';

export interface Outage {
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

const stop: Act = ({ etcd }) => etcd.pause();
const goOn: Act = ({ etcd }) => etcd.resume();
const heal: Act = ({ proxy }) => proxy.heal();

/** Ways for a cluster to be down, as clients see it: no write succeeds. */
export const outages: Readonly<Record<string, (cluster: FaultCluster) => Outage | Promise<Outage>>> = {
  'connections to all members are refused': ({ members }) =>
    on(
      members,
      ({ proxy }) => {
        proxy.refuse();
        proxy.cut();
      },
      heal,
    ),
  'all members are silently out of reach': ({ members }) => on(members, ({ proxy }) => proxy.blackHole('both'), heal),
  'all members are stopped': ({ members }) => on(members, stop, goOn),
  async 'the leader and another member are stopped'(cluster) {
    const { leader, follower } = await roles(cluster);
    return on([leader, follower], stop, goOn);
  },
};
