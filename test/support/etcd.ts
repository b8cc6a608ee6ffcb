import { randomUUID } from 'node:crypto';
import { makeDataDir } from './data-dir.ts';
import { EtcdDied, EtcdMember, findEtcd } from './etcd-member.ts';
import { freePorts } from './ports.ts';
import { until } from './until.ts';

export type { EtcdMember } from './etcd-member.ts';

export interface EtcdOptions {
  /** A server without the v2 API, to start instead of the etcd on the PATH. Default: the one that {@link startByDefault} got. */
  readonly program?: string | undefined;
  /** Appended to the command line; in etcd the last value of an option wins. */
  readonly args?: readonly string[];
  /** Further URLs a single member listens on, such as an https one. */
  readonly alsoListen?: readonly string[];
  /** Returns the URLs a member advertises instead of those it listens on; called again when its ports had to change. */
  readonly advertise?: (listening: MemberUrls, index: number) => MemberUrls;
}

export interface MemberUrls {
  readonly url: string;
  readonly peerUrl: string;
}

export interface EtcdCluster {
  readonly members: readonly EtcdMember[];
  readonly urls: string[];
  /** Waits until a majority of the whole cluster reports the same leader; paused and stopped members do not count. */
  leader(): Promise<EtcdMember>;
  stop(): Promise<void>;
}

let defaultProgram: string | undefined;

/** Chooses the server that this process starts from now on; undefined: the etcd on the PATH. */
export function startByDefault(program: string | undefined): void {
  defaultProgram = program;
}

/** Starts a single-member etcd and waits until it is ready. */
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

/** Starts the members of one cluster and waits until each is ready. */
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
  const { program = defaultProgram } = options;
  if (program === undefined) findEtcd();
  const ports = await freePorts(size * 2);
  const { advertise = (listening) => listening } = options;
  const specs = Array.from({ length: size }, (_, index) => {
    const url = `http://127.0.0.1:${ports[2 * index]}`;
    const peerUrl = `http://127.0.0.1:${ports[2 * index + 1]}`;
    const advertised = advertise({ url, peerUrl }, index);
    return { name: `m${index + 1}`, url, peerUrl, advertised, dataDir: makeDataDir() };
  });
  const cluster = specs.map((spec) => `${spec.name}=${spec.advertised.peerUrl}`).join(',');
  const token = ownToken();
  return specs.map(
    (spec) =>
      new EtcdMember({
        ...spec,
        program,
        args: [
          ...(program === undefined ? ['--enable-v2'] : []),
          `--name=${spec.name}`,
          `--data-dir=${spec.dataDir}`,
          `--listen-client-urls=${[spec.url, ...(options.alsoListen ?? [])].join(',')}`,
          `--advertise-client-urls=${spec.advertised.url}`,
          `--listen-peer-urls=${spec.peerUrl}`,
          `--initial-advertise-peer-urls=${spec.advertised.peerUrl}`,
          `--initial-cluster=${cluster}`,
          token,
          ...(options.args ?? []),
        ],
      }),
  );
}

/** Options of a cluster that may get a further member as soon as it has started, and not only after 5 s. */
export const RECONFIGURABLE = ['--strict-reconfig-check=false'];

/**
 * Adds a learner to a running cluster, and waits until it reports that it is one: it gets all writes, but has no vote and serves no
 * requests for locks. Start the cluster with {@link RECONFIGURABLE}.
 * @param further arguments, such as `--enable-v2`
 */
export async function startLearner(
  [member]: readonly EtcdMember[],
  program: string | undefined = defaultProgram,
  further: readonly string[] = [],
): Promise<EtcdMember> {
  const [url, peerUrl] = (await freePorts(2)).map((port) => `http://127.0.0.1:${port}`) as [string, string];
  const body = JSON.stringify({ peerURLs: [peerUrl], isLearner: true });
  const answer = await fetch(`${member?.url}/v3/cluster/member/add`, { method: 'POST', body });
  const { members } = (await answer.json()) as { members: { name?: string; peerURLs: string[] }[] };
  const dataDir = makeDataDir();
  const args = [
    '--name=learner',
    `--data-dir=${dataDir}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=${members.map(({ name = 'learner', peerURLs }) => `${name}=${peerURLs[0]}`).join(',')}`,
    '--initial-cluster-state=existing',
    ...further,
  ];
  const learner = new EtcdMember({ url, peerUrl, dataDir, program, args });
  await until(
    () => raftStatus(learner),
    (status) => status?.isLearner === true,
    { every: 20 },
  );
  return learner;
}

/** Replaces the cluster of these members by an empty one with another id on the same URLs. */
export async function renewCluster(members: readonly EtcdMember[]): Promise<void> {
  const token = ownToken();
  await Promise.all(members.map((member) => member.wipe([token])));
  await Promise.all(members.map((member) => member.restart()));
}

/** A token per cluster: a member never joins an earlier cluster that used the same ports. */
const ownToken = (): string => `--initial-cluster-token=${randomUUID()}`;

/** Kills the members first: their data is deleted, so they need no orderly shutdown. */
export async function stopAll(members: readonly EtcdMember[]): Promise<void> {
  await Promise.all(members.map((member) => member.kill()));
  await Promise.all(members.map((member) => member.stop()));
}

/** A member's raft status: 64-bit numbers as decimal text. */
interface RaftStatus {
  readonly id: string;
  /** undefined while the member knows no leader. */
  readonly leader: string | undefined;
  readonly term: bigint;
  readonly isLearner: boolean;
}

/**
 * Waits until a majority reports the same leader in the latest term: a leader of an earlier term is about to step down, although
 * other members still report it.
 * @param reachable the members to ask; other, paused and stopped members count neither as leader nor as vote
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

/** Returns the term that a member is in. Each election begins a new one. */
export async function termOf(member: EtcdMember): Promise<bigint> {
  const status = await raftStatus(member);
  if (status === undefined) throw new Error(`${member.url} does not report its status`);
  return status.term;
}

/** Reads the status from the v3 API, because it includes the term. */
async function raftStatus(member: EtcdMember): Promise<RaftStatus | undefined> {
  try {
    const signal = AbortSignal.timeout(2_000);
    const answer = await fetch(`${member.url}/v3/maintenance/status`, { method: 'POST', body: '{}', signal });
    const status = (await answer.json()) as {
      header: { member_id: string };
      leader?: string;
      raftTerm: string;
      isLearner?: boolean;
    };
    const { header, leader, raftTerm, isLearner = false } = status;
    return { id: header.member_id, leader, term: BigInt(raftTerm), isLearner };
  } catch {
    return undefined;
  }
}
