import { randomUUID } from 'node:crypto';
import { makeDataDir } from './data-dir.ts';
import { EtcdDied, EtcdMember, findEtcd } from './etcd-member.ts';
import { freePorts } from './ports.ts';
import { until } from './until.ts';

export type { EtcdMember } from './etcd-member.ts';

export interface EtcdOptions {
  /** Appended to the command line; etcd lets the last one win. */
  readonly args?: readonly string[];
  /** Further URLs a single member listens on, such as an https one. */
  readonly alsoListen?: readonly string[];
  /** Tells the URLs a member gives out instead of those it listens on; asked again when its ports had to change. */
  readonly advertise?: (listening: MemberUrls, index: number) => MemberUrls;
}

export interface MemberUrls {
  readonly url: string;
  readonly peerUrl: string;
}

export interface EtcdCluster {
  readonly members: readonly EtcdMember[];
  readonly urls: string[];
  /** The member that a majority of the whole cluster names as leader; paused and stopped members have no say. */
  leader(): Promise<EtcdMember>;
  stop(): Promise<void>;
}

/** A single-member etcd of its own, ready for use. */
export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdMember> {
  const [member] = await startMembers(1, options);
  if (member === undefined) throw new Error('no member started');
  return member;
}

export async function startCluster(size = 3, options: EtcdOptions = {}): Promise<EtcdCluster> {
  const members = await startMembers(size, options);
  return {
    members,
    urls: members.map((member) => member.url),
    leader: () => findLeader(members),
    stop: () => stopAll(members),
  };
}

/** The members of one cluster, each ready for use. */
export async function startMembers(size: number, options: EtcdOptions = {}): Promise<EtcdMember[]> {
  for (let attempt = 1; ; attempt++) {
    const members = await spawnMembers(size, options);
    try {
      await Promise.all(members.map((member) => member.ready()));
      return members;
    } catch (error) {
      await stopAll(members);
      if (!(error instanceof EtcdDied && error.portTaken && attempt < 5)) throw error;
    }
  }
}

async function spawnMembers(size: number, options: EtcdOptions): Promise<EtcdMember[]> {
  findEtcd();
  const ports = await freePorts(size * 2);
  const { advertise = (listening) => listening } = options;
  const places = Array.from({ length: size }, (_, index) => {
    const url = `http://127.0.0.1:${ports[2 * index]}`;
    const peerUrl = `http://127.0.0.1:${ports[2 * index + 1]}`;
    const advertised = advertise({ url, peerUrl }, index);
    return { name: `m${index + 1}`, url, peerUrl, advertised, dataDir: makeDataDir() };
  });
  const cluster = places.map((place) => `${place.name}=${place.advertised.peerUrl}`).join(',');
  const token = ownToken();
  return places.map(
    (place) =>
      new EtcdMember({
        ...place,
        args: [
          '--enable-v2',
          `--name=${place.name}`,
          `--data-dir=${place.dataDir}`,
          `--listen-client-urls=${[place.url, ...(options.alsoListen ?? [])].join(',')}`,
          `--advertise-client-urls=${place.advertised.url}`,
          `--listen-peer-urls=${place.peerUrl}`,
          `--initial-advertise-peer-urls=${place.advertised.peerUrl}`,
          `--initial-cluster=${cluster}`,
          token,
          ...(options.args ?? []),
        ],
      }),
  );
}

/** Makes another cluster of these members, empty and with another id, on the same URLs. */
export async function renewCluster(members: readonly EtcdMember[]): Promise<void> {
  const token = ownToken();
  await Promise.all(members.map((member) => member.wipe([token])));
  await Promise.all(members.map((member) => member.restart()));
}

/** Each cluster has its own: a member never joins one that once used the same ports. */
const ownToken = (): string => `--initial-cluster-token=${randomUUID()}`;

/** The data is thrown away, so there is nothing to hand over in order. */
export async function stopAll(members: readonly EtcdMember[]): Promise<void> {
  await Promise.all(members.map((member) => member.kill()));
  await Promise.all(members.map((member) => member.stop()));
}

/** What a member knows of raft: 64-bit numbers as decimal text. */
interface RaftStatus {
  readonly id: string;
  /** undefined while it knows of none. */
  readonly leader: string | undefined;
  readonly term: bigint;
}

/**
 * Whom a majority names in the latest term: a leader of an earlier one is about to step down, though others name it still.
 * @param reachable of the members; the others cannot be the leader, nor vote, nor do those that are paused or stopped
 */
export async function findLeader(
  members: readonly EtcdMember[],
  reachable: () => readonly EtcdMember[] = () => members,
): Promise<EtcdMember> {
  const leader = await until(
    async () => {
      const asked = reachable().filter((member) => member.running && !member.paused);
      const statuses = await Promise.all(asked.map(raftStatus));
      const terms = statuses.map((status) => status?.term ?? 0n);
      const latest = terms.reduce((a, b) => (a > b ? a : b), 0n);
      return asked.find((_, index) => {
        const id = statuses[index]?.id;
        const votes = statuses.filter((other) => id !== undefined && other?.leader === id && other.term === latest);
        return votes.length > members.length / 2;
      });
    },
    (found) => found !== undefined,
    { every: 50 },
  );
  if (leader === undefined) throw new Error('no leader');
  return leader;
}

/** By the v3 API, which tells the term. */
async function raftStatus(member: EtcdMember): Promise<RaftStatus | undefined> {
  try {
    const signal = AbortSignal.timeout(2_000);
    const answer = await fetch(`${member.url}/v3/maintenance/status`, { method: 'POST', body: '{}', signal });
    const { header, leader, raftTerm } = (await answer.json()) as {
      header: { member_id: string };
      leader?: string;
      raftTerm: string;
    };
    return { id: header.member_id, leader, term: BigInt(raftTerm) };
  } catch {
    return undefined;
  }
}
