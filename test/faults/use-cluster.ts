import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { leftIn } from './expired.ts';
import { type FaultCluster, type FaultClusterOptions, type FaultMember, startFaultCluster } from './fault-cluster.ts';
import { STORE } from './stores/tested.ts';

/** Seconds: the longest TTL of these tests. */
const LONGEST_TTL = 60;

/** Starts a cluster for the tests of one file. After each test it ends all faults, and expects that no lease is left. */
export function useCluster(options: FaultClusterOptions = {}): () => FaultCluster {
  let cluster: FaultCluster | undefined;
  const started = (): FaultCluster => {
    if (cluster === undefined) throw new Error('the cluster is not available before the tests begin');
    return cluster;
  };
  beforeAll(async () => {
    cluster = await startFaultCluster(options);
  });
  // Its callback runs last, when the test has closed its clients.
  beforeEach(({ onTestFinished }) => onTestFinished(() => expectNoLease(started())));
  afterEach(() => recover(started()));
  afterAll(() => cluster?.stop());
  return started;
}

/** Ends all faults; resolves once every member is ready. */
export async function recover(cluster: FaultCluster): Promise<void> {
  for (const { etcd, proxy, rejoin } of cluster.members) {
    proxy.heal();
    rejoin();
    if (etcd.paused) etcd.resume();
    if (!etcd.running) await etcd.restart({ wait: false });
  }
  await Promise.all(cluster.members.map(({ etcd }) => etcd.ready()));
}

async function expectNoLease(cluster: FaultCluster): Promise<void> {
  expect(await leftIn(cluster, STORE, LONGEST_TTL, (url) => STORE.leases(url))).toEqual([]);
}

/** All members, this one first: a client stays with the first member that answers. */
export const servedBy = (member: FaultMember, { members }: FaultCluster): FaultMember[] => [
  member,
  ...members.filter((other) => other !== member),
];

/** Resolves to the leader and the two other members. */
export async function roles(cluster: FaultCluster) {
  const leader = await cluster.leader();
  const [follower, other] = cluster.members.filter((member) => member !== leader);
  if (follower === undefined || other === undefined) throw new Error('the cluster needs three members');
  return { leader, follower, other };
}
