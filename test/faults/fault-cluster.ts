import { type EtcdMember, findLeader, renewCluster, startMembers, stopAll } from '../support/etcd.ts';
import { startPeerNetwork } from './peer-network.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

const SIZE = 3;

export interface FaultClusterOptions {
  /** Appended to the command line of every member. */
  readonly args?: readonly string[];
  /**
   * Whether the leader stays although a busy machine delays its heartbeats, which pass through the test's own process. For
   * tests whose faults leave the leader alone. Default false: etcd's own timeout of a second.
   */
  readonly steady?: boolean;
}

/** Longer than any machine stands still. */
const STEADY = ['--election-timeout=10000'];

export interface FaultMember {
  /** The process; its own URL passes by the proxy. */
  readonly etcd: EtcdMember;
  readonly proxy: TcpProxy;
  /** The proxy's, for clients. */
  readonly url: string;
  /** What this member and the others say to each other vanishes silently from now on; clients still reach it. */
  isolate(): void;
  rejoin(): void;
}

export interface FaultCluster {
  readonly members: readonly FaultMember[];
  /** The proxies', for clients. */
  readonly urls: string[];
  /** The one that most members name, as seen by those that run and are not isolated. */
  leader(): Promise<FaultMember>;
  /** Those that follow it: neither stopped, paused nor isolated. */
  followers(): Promise<FaultMember[]>;
  /** Kills all; in their place stands an empty cluster with another id, healthy between its members. */
  wipe(): Promise<void>;
  stop(): Promise<void>;
}

/** A real cluster on loopback, every connection to it and within it open to faults. */
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
