import { type EtcdMember, findLeader, renewCluster, startMembers, stopAll } from '../support/etcd.ts';
import { startPeerNetwork } from './peer-network.ts';
import { STORE } from './stores/tested.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

const SIZE = 3;

export interface FaultClusterOptions {
  /** Appended to the command line of every member. */
  readonly args?: readonly string[];
  /**
   * Whether the election timeout is so long that a busy machine, which delays heartbeats, causes no election: heartbeats pass
   * through the test's own process. For tests whose faults do not affect the leader. Default false: etcd's own timeout of 1 s.
   */
  readonly steady?: boolean;
}

/** Longer than any stall of the machine. */
const STEADY = [`--election-timeout=${STORE.steadyElection}`];

export interface FaultMember {
  /** The process; its own URL bypasses the proxy. */
  readonly etcd: EtcdMember;
  readonly proxy: TcpProxy;
  /** The URL of the proxy, for clients. */
  readonly url: string;
  /** Silently drops everything between this member and the others from now on; clients still reach the member. */
  isolate(): void;
  rejoin(): void;
}

export interface FaultCluster {
  readonly members: readonly FaultMember[];
  /** The URLs of the proxies, for clients. */
  readonly urls: string[];
  /** Resolves to the member that a majority names as leader; asks only members that run and are not isolated. */
  leader(): Promise<FaultMember>;
  /** Resolves to the members that follow the leader: they run, and are neither paused nor isolated. */
  followers(): Promise<FaultMember[]>;
  /** Kills all members and starts an empty cluster with another id on the same URLs, with no member isolated. */
  wipe(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a real cluster on loopback, with a proxy for every connection to it and within it. */
export async function startFaultCluster({
  args = [],
  steady = false,
}: FaultClusterOptions = {}): Promise<FaultCluster> {
  const peers = await startPeerNetwork(SIZE);
  const proxies = await Promise.all(Array.from({ length: SIZE }, () => startTcpProxy()));
  const stopNetwork = () => Promise.all([peers.stop(), ...proxies.map((proxy) => proxy.stop())]);
  const etcds = await startMembers(SIZE, {
    args: steady ? [...STEADY, ...args] : args,
    advertise(listening, index) {
      const proxy = proxies[index] as TcpProxy;
      proxy.target = listening.url;
      peers.connect(index, listening.peerUrl);
      return { url: proxy.url, peerUrl: peers.urls[index] as string };
    },
  }).catch(async (error) => {
    await stopNetwork();
    throw error;
  });

  const members = etcds.map((etcd, index): FaultMember => {
    const proxy = proxies[index] as TcpProxy;
    return {
      etcd,
      proxy,
      url: proxy.url,
      isolate: () => peers.isolate(index),
      rejoin: () => peers.rejoin(index),
    };
  });
  const reachable = () => etcds.filter((_, index) => !peers.isIsolated(index));

  async function leader(): Promise<FaultMember> {
    const found = await findLeader(etcds, reachable);
    return members[etcds.indexOf(found)] as FaultMember;
  }

  return {
    members,
    urls: members.map(({ url }) => url),
    leader,
    async followers() {
      const first = await leader();
      const live = reachable().filter((etcd) => etcd !== first.etcd && etcd.running && !etcd.paused);
      return members.filter(({ etcd }) => live.includes(etcd));
    },
    async wipe() {
      for (const member of members) member.rejoin();
      await renewCluster(etcds);
    },
    async stop() {
      await stopAll(etcds);
      await stopNetwork();
    },
  };
}
