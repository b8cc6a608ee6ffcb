import type { V3Member } from '../../../src/server/v3/member.ts';
import { deletion, put } from '../../server/v3/requests.ts';
import type { Network } from '../network/network.ts';
import { CLUSTER_NAME, PORT } from '../plan.ts';
import { Process, type ProcessOptions } from '../virtual/process.ts';
import type { Program } from '../virtual/program.ts';
import type { Random } from '../virtual/random.ts';
import type { Scheduler } from '../virtual/scheduler.ts';
import { ReplicaClock } from './clocks.ts';
import { Consensus } from './consensus.ts';
import { newCounts } from './counts.ts';
import { GatewayOfMember } from './gateway-of-member.ts';
import { KeysOfMember } from './keys-of-member.ts';
import { HungUp, LateWrites } from './late-writes.ts';
import type { Member } from './member.ts';
import type * as etcd from './server.ts';
import { SharedV3 } from './shared-v3.ts';
import { addUsers, TokensOfMember } from './users.ts';
import { type Revoked, revokeWrongly } from './wrong-revocations.ts';

/** Milliseconds between two looks of the leader for what has expired, as in etcd. */
const TICK = 500;

/** Number of events: etcd v2 remembers 1000. */
const FLOOD = 1000;

export interface ClusterOptions {
  /** Names its members. */
  readonly name: string;
  /** The first numbers of the addresses of its members. */
  readonly subnet: string;
  readonly seed: string;
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly random: Random;
  readonly program: Program<typeof etcd>;
  /** One for each member. */
  readonly members: readonly ProcessOptions[];
  readonly trace: (line: string) => void;
  /** Number of changes of v3 that it keeps. */
  readonly history: number;
  /** Whether v3 asks for a user. */
  readonly hasUsers: boolean;
  readonly onRevoked: (revoked: Revoked) => void;
  /** Called with each key of v2 that a request has removed, perhaps several times. */
  readonly onRemoved: (key: string) => void;
  /** Called with the key of an entry of v3 that a later write of it has created. */
  readonly onCreatedAgain: (key: string) => void;
}

/** A cluster of etcd in memory, with both APIs. */
export class Cluster {
  readonly name: string;
  readonly members: readonly Member[];
  readonly consensus: Consensus<Member>;
  readonly counts = newCounts();
  #shared: SharedV3;
  readonly #options: ClusterOptions;
  readonly #etcd: typeof etcd;

  constructor(options: ClusterOptions) {
    this.#options = options;
    const { name, subnet, seed, scheduler, program } = options;
    this.name = name;
    const processes = options.members.map((each, i) => new Process(`${name}${i + 1}`, scheduler, seed, each));
    const [first] = processes;
    if (!first) throw new Error('a cluster needs a member');
    let loaded: typeof etcd | undefined;
    first.run(() => {
      loaded = program.take();
    });
    this.#etcd = loaded as unknown as typeof etcd;
    this.members = processes.map((process, i) => this.#newMember(process, `http://${subnet}.${i + 1}:${PORT}`));
    this.#shared = this.#newShared();
    this.consensus = new Consensus(this.members, options, (leader, former) => this.#onLeader(leader, former));
    for (const member of this.members) this.#serve(member);
  }

  get v3(): V3Member {
    return this.#shared.member;
  }

  get urls(): readonly string[] {
    return this.members.map(({ url }) => url);
  }

  /** The replica that has applied most. */
  get newest(): Member {
    return this.members.reduce((one, other) => (other.applied > one.applied ? other : one));
  }

  /**
   * Continues a member that was stopped.
   * @param revokes whether it revokes leases that are alive, if it was the leader
   */
  continue(member: Member, { revokes = false } = {}): void {
    member.process.continue();
    member.continuedAt = this.#options.scheduler.now;
    this.consensus.continued(member);
    const former = this.#shared.keepAlives.formerAt(member);
    if (!revokes || !former || this.consensus.leader === member) return;
    const { v3, consensus, counts } = this;
    const { random, onRevoked } = this.#options;
    revokeWrongly(member, former, { v3, consensus, random, counts, onRevoked });
  }

  /** Others use the store of v2 so much that its history has nothing else any more. */
  flood(): void {
    const { leader } = this.consensus;
    const flood = ({ store }: Member): void => {
      for (let i = 0; i < FLOOD; i++) store.set('/other', '', {});
      store.delete('/other', {});
    };
    if (leader) void this.consensus.propose(leader, flood).catch(() => {});
  }

  /** Others use the store of v3, and compact it, but for the latest revisions. */
  compact(keep: number): void {
    const { leader } = this.consensus;
    const { store } = this.v3;
    const compact = (): void => {
      for (const value of ['1', '2']) store.put(put({ key: '/other', value }));
      store.deleteRange(deletion({ key: '/other' }));
      const revision = store.revision - BigInt(keep);
      if (revision <= store.compacted) return;
      store.compact({ revision, physical: false });
      this.counts.compactions += 1;
    };
    if (leader) void this.consensus.propose(leader, compact).catch(() => {});
  }

  /** Puts a new cluster in the place of this one: with another id, empty stores, and the same addresses. */
  replace(): void {
    this.counts.replacements += 1;
    for (const member of this.members) {
      member.process.kill();
      const process = this.#newProcess(member);
      process.run(() => Object.assign(member, this.#newMember(process, member.url)));
    }
    this.#shared = this.#newShared();
    this.consensus.restart();
    for (const member of this.members) this.#serve(member);
  }

  /** A member has not seen the tokens of its users for too long. */
  forgetTokens(member: Member): void {
    this.counts.forgottenTokens += member.tokens.forget();
  }

  restart(member: Member): void {
    this.forgetTokens(member);
    member.process = this.#newProcess(member);
    member.memory = new this.#etcd.MemoryStore(member.store);
    this.#serve(member);
  }

  /** Call this at the end of a world in which nothing was left behind. */
  end(): void {
    this.#options.program.giveBack(this.#etcd);
  }

  #newProcess({ name }: Member): Process {
    const { seed, scheduler, members } = this.#options;
    const options = members[this.members.findIndex((member) => member.name === name)] ?? {};
    return new Process(name, scheduler, `${seed} ${scheduler.now}`, options);
  }

  #newMember(process: Process, url: string): Member {
    const clock = new ReplicaClock(() => process.wall());
    const store = new this.#etcd.Store(clock);
    const memory = new this.#etcd.MemoryStore(store);
    const { name } = process;
    const tokens = new TokensOfMember();
    return { name, url, process, applied: 0, continuedAt: Number.NEGATIVE_INFINITY, tokens, store, clock, memory };
  }

  /** One cluster: its id is that of the first replica. */
  #newShared(): SharedV3 {
    const { network, random, history, hasUsers } = this.#options;
    const [first, ...others] = this.members.map(({ store }) => store);
    const clusterId = first?.clusterId ?? '';
    for (const store of others) Object.assign(store, { clusterId });
    const { urls, counts } = this;
    const etcd = this.#etcd;
    const shared = new SharedV3({
      clusterId,
      urls,
      history,
      etcd,
      consensus: () => this.consensus,
      network,
      random,
      counts,
    });
    if (hasUsers) addUsers(shared.member);
    return shared;
  }

  #serve(member: Member): void {
    const { network, random, trace, onRemoved, onCreatedAgain } = this.#options;
    const { process } = member;
    process.run(() => {
      const server = this.#etcd.createHttpServer();
      const requests = new HungUp(server);
      const late = new LateWrites(member, this.#options.scheduler, this.counts);
      new this.#etcd.Front({
        keys: this.#etcd.forEveryone(
          new KeysOfMember(this.#etcd, member, { consensus: this.consensus, counts: this.counts, late, onRemoved }),
        ),
        gateway: new GatewayOfMember(member, {
          etcd: this.#etcd,
          gateway: this.#shared.gateway,
          store: this.v3.store,
          keepAlives: this.#shared.keepAlives,
          consensus: this.consensus,
          random,
          counts: this.counts,
          requests,
          late,
          onCreatedAgain,
        }),
        // Each member lists all of them in /v2/machines, where python-etcd looks for others.
        member: { id: member.name, name: member.name, peerURLs: [], clientURLs: this.urls },
        hosts: [CLUSTER_NAME],
        onServed: ({ method, url, status, client, isCutOff }) =>
          trace(`${member.name}: ${client} ${method} ${url} ${isCutOff ? 'cut off' : status}`),
      }).serve(server);
      const { host } = new URL(member.url);
      network.listen(host, { process, accept: (socket) => void server.emit('connection', socket) });
    });
  }

  #onLeader(leader: Member, former: Member | undefined): void {
    const { trace } = this.#options;
    const term = this.consensus?.term ?? 2;
    trace(`cluster: ${leader.name} leads, term ${term}`);
    if (former && former !== leader) this.#shared.keepAlives.replaced(former, term - 1);
    const { process } = leader;
    this.#shared.clock.follow(() => process.now());
    // A new leader gives each lease its whole TTL again.
    for (const id of this.v3.store.leases.ids) this.v3.store.leases.keepAlive(id);
    this.#tick(leader, process);
  }

  /** What the leader does while it leads. */
  #tick(leader: Member, process: Process): void {
    process.after(TICK, () => {
      if (this.consensus.leader !== leader || leader.process !== process) return;
      if (this.consensus.hasQuorum(leader)) {
        const cutoff = process.wall();
        if (leader.clock.isArmed)
          void this.consensus
            .propose(leader, (member) => member.clock.at(cutoff, () => member.clock.expire()))
            .catch(() => {});
        this.#shared.clock.tick();
      }
      this.#tick(leader, process);
    });
  }
}
