import { afterAll, afterEach, beforeAll } from 'vitest';
import { type FaultCluster, type FaultClusterOptions, type FaultMember, startFaultCluster } from './fault-cluster.ts';

/** A cluster for the tests of one file, which finds every test's faults gone by the next one. */
export function useCluster(options: FaultClusterOptions = {}): () => FaultCluster {
  let cluster: FaultCluster | undefined;
  const started = (): FaultCluster => {
    if (cluster === undefined) throw new Error('no cluster before the tests begin');
    return cluster;
  };
  beforeAll(async () => {
    cluster = await startFaultCluster(options);
  });
  afterEach(() => recover(started()));
  afterAll(() => cluster?.stop());
  return started;
}

/** Resolves once every member takes part again. */
export async function recover(cluster: FaultCluster): Promise<void> {
  for (const { etcd, proxy, rejoin } of cluster.members) {
    proxy.heal();
    rejoin();
    if (etcd.paused) etcd.resume();
    if (!etcd.running) await etcd.restart({ wait: false });
  }
  await Promise.all(cluster.members.map(({ etcd }) => etcd.ready()));
}

/** All members, that one first: clients stay with the first that answers. */
export const servedBy = (member: FaultMember, { members }: FaultCluster): FaultMember[] => [
  member,
  ...members.filter((other) => other !== member),
];

/** Of a member that has just done something to the others: the leader and those that follow it. */
export async function roles(cluster: FaultCluster) {
  const leader = await cluster.leader();
  const [follower, other] = cluster.members.filter((member) => member !== leader);
  if (follower === undefined || other === undefined) throw new Error('a cluster has three members');
  return { leader, follower, other };
}
