import type { Network } from '../network/network.ts';
import type { Process } from '../virtual/process.ts';
import type { Random } from '../virtual/random.ts';
import type { Scheduler } from '../virtual/scheduler.ts';

/** Milliseconds without an answer after which etcd gives a proposal up. It may be carried out later. */
export const GIVE_UP = 7000;

/** Milliseconds between two looks at who leads. */
const LOOK = 100;

/** Milliseconds without a working leader after which another one is elected. */
const ELECTION: readonly [number, number] = [1000, 2500];

/** Milliseconds without word from its leader after which a member knows none. A leader without quorum gives up after as long. */
const PATIENCE: readonly [number, number] = [1000, 2000];

/** Milliseconds in which a member that was stopped hears who leads now. */
const NEWS: readonly [number, number] = [0.2, 40];

/** A member, as the others see it. */
export interface Peer {
  process: Process;
  /** Number of entries of the log that it has applied. */
  applied: number;
}

/** An entry of the log. Each member applies it, at its own time. */
export interface LogEntry {
  readonly apply: (member: Peer) => void;
}

interface Proposal extends LogEntry {
  readonly id: number;
}

/** What a member knows of the leader. */
interface View<P> {
  /** A restarted process knows nothing. */
  readonly process: Process;
  leader: P | undefined;
  heardAt: number;
  patience: number;
}

/** A proposal got no answer in time. It may have been carried out, or may be carried out later. */
export class TimedOut extends Error {}

/**
 * The agreement of a cluster: one log, and a leader that appends to it. Not Raft itself, but what its users see: what is committed stays;
 * what is proposed may be lost, or committed late; members apply the log one after the other, each as fast as it can.
 */
export class Consensus<P extends Peer> {
  term = 2;
  leader: P | undefined;
  elections = 0;
  readonly #peers: readonly P[];
  readonly #scheduler: Scheduler;
  readonly #network: Network;
  readonly #random: Random;
  readonly #onLeader: (leader: P, former: P | undefined) => void;
  #log: LogEntry[] = [];
  /** Proposals at a leader that cannot commit them. */
  readonly #uncommitted: Proposal[] = [];
  /** Proposals at members that know no leader. */
  readonly #homeless: [P, Proposal][] = [];
  readonly #views = new Map<P, View<P>>();
  #proposals = 0;
  /** The process of the leader when it was elected: one that was restarted leads no more. */
  #leading: Process | undefined;
  #leaderless = 0;
  #patience = 0;

  constructor(
    peers: readonly P[],
    { scheduler, network, random }: { scheduler: Scheduler; network: Network; random: Random },
    onLeader: (leader: P, former: P | undefined) => void,
  ) {
    this.#peers = peers;
    this.#scheduler = scheduler;
    this.#network = network;
    this.#random = random;
    this.#onLeader = onLeader;
    this.#lead(peers[0]);
    for (const peer of peers) this.#hear(peer);
    this.#look();
  }

  /** Whether the member is in touch with most of the others, so that it could lead. */
  hasQuorum(peer: P): boolean {
    if (!isUp(peer)) return false;
    const reached = this.#peers.filter((other) => other === peer || (isUp(other) && this.#areLinked(peer, other)));
    return reached.length > this.#peers.length / 2;
  }

  /** Whether the member knows a leader that works. */
  isLed(peer: P): boolean {
    const { leader } = this;
    return leader !== undefined && (leader === peer || this.#areLinked(leader, peer)) && this.hasQuorum(leader);
  }

  /** Whether the member leads, and was not restarted since. */
  isLeading(peer: P): boolean {
    return this.leader === peer && peer.process === this.#leading;
  }

  /** Returns who leads in the view of the member, which may be behind; undefined if it knows no leader. */
  leaderOf(peer: P): P | undefined {
    return this.#viewOf(peer).leader;
  }

  /** Milliseconds since the member has heard from its leader. */
  silenceAt(peer: P): number {
    return this.#scheduler.now - this.#viewOf(peer).heardAt;
  }

  /** Whether the member has not yet applied all that is agreed. */
  isBehind(peer: P): boolean {
    return peer.applied < this.#log.length;
  }

  /** Starts again with empty stores: call this when all members have new processes. */
  restart(): void {
    this.#log = [];
    this.#uncommitted.length = 0;
    this.#homeless.length = 0;
    this.#leaderless = 0;
    for (const peer of this.#peers) peer.applied = 0;
    this.leader = undefined;
    this.#lead(this.#peers[0]);
    for (const peer of this.#peers) this.#hear(peer);
  }

  /** Call this when a stopped member continues: it hears the news a little later. */
  continued(peer: P): void {
    this.#scheduler.after(this.#random.between(...NEWS), () => this.#hear(peer));
  }

  /**
   * Proposes an entry at a member. Resolves to what applying it there has returned, when it has been applied there.
   * @throws {TimedOut} after 7 s
   * @throws what applying it there throws
   */
  propose<T>(at: P, apply: (member: P) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#proposals += 1;
      const cancel = at.process.after(GIVE_UP, () => reject(new TimedOut('etcdserver: request timed out')));
      const { process } = at;
      const entry = {
        id: this.#proposals,
        apply: (member: Peer) => {
          if (member !== at || at.process !== process) return void quietly(() => apply(member as P));
          cancel();
          try {
            resolve(apply(at));
          } catch (error) {
            reject(error);
          }
        },
      };
      this.#forward(at, entry);
    });
  }

  #forward(from: P, proposal: Proposal): void {
    const { leader } = this;
    if (!leader) this.#homeless.push([from, proposal]);
    else if (leader === from) this.#arrive(leader, proposal);
    else {
      const { process } = leader;
      this.#network.send(from.process.name, process.name, () => process.receive(() => this.#arrive(leader, proposal)));
    }
  }

  #arrive(at: P, proposal: Proposal): void {
    if (this.leader === at) {
      this.#uncommitted.push(proposal);
      this.#commit();
    } else this.#forward(at, proposal);
  }

  #commit(): void {
    const { leader } = this;
    if (!leader || !this.#isWorking) return;
    const log = this.#log;
    for (const proposal of this.#uncommitted.splice(0)) {
      const others = this.#peers.filter((peer) => peer !== leader);
      // To a majority and back.
      this.#scheduler.after(this.#random.between(0.2, 1.5), () => {
        if (log !== this.#log) return;
        const index = log.push(proposal);
        leader.process.receive(() => this.#apply(leader, index));
        for (const other of others) {
          const { process } = other;
          this.#network.send(leader.process.name, process.name, () => process.receive(() => this.#apply(other, index)));
        }
      });
    }
  }

  #apply(peer: P, index: number): void {
    while (peer.applied < index) {
      const entry = this.#log[peer.applied];
      peer.applied += 1;
      entry?.apply(peer);
    }
  }

  /** A member that was restarted, or that missed entries, gets what it lacks. */
  catchUp(peer: P): void {
    peer.process.receive(() => this.#apply(peer, this.#log.length));
  }

  #look(): void {
    this.#scheduler.after(LOOK, () => {
      const { leader } = this;
      if (leader && this.#isWorking) {
        this.#leaderless = 0;
        this.#commit();
        for (const peer of this.#peers)
          if (peer.applied < this.#log.length && isUp(peer) && (peer === leader || this.#areLinked(leader, peer)))
            this.catchUp(peer);
      } else this.#elect();
      for (const peer of this.#peers) this.#hear(peer);
      this.#look();
    });
  }

  /** Whether there is a leader that can commit. */
  get #isWorking(): boolean {
    return this.leader !== undefined && this.isLeading(this.leader) && this.hasQuorum(this.leader);
  }

  #viewOf(peer: P): View<P> {
    const known = this.#views.get(peer);
    if (known?.process === peer.process) return known;
    const { process } = peer;
    const view = { process, leader: undefined, heardAt: this.#scheduler.now, patience: 0 };
    this.#views.set(peer, view);
    return view;
  }

  /** The member hears from the leader, or notices that it has not for too long. */
  #hear(peer: P): void {
    const view = this.#viewOf(peer);
    if (!isUp(peer)) return;
    const { now } = this.#scheduler;
    const { leader } = this;
    if (leader && this.#isWorking && (leader === peer || this.#areLinked(leader, peer))) {
      view.leader = leader;
      view.heardAt = now;
      view.patience = this.#random.between(...PATIENCE);
    } else if (now - view.heardAt > view.patience) view.leader = undefined;
  }

  #elect(): void {
    if (this.#leaderless === 0) this.#patience = this.#random.between(...ELECTION);
    this.#leaderless += LOOK;
    if (this.#leaderless < this.#patience) return;
    const next = this.#random.pick(this.#peers.filter((peer) => this.hasQuorum(peer)));
    if (!next) return;
    // What the old leader has not committed is lost, or is committed by the new one: Raft promises neither.
    const old = this.#uncommitted.splice(0).filter(() => this.#random.chance(0.5));
    this.elections += 1;
    this.term += 1;
    this.#leaderless = 0;
    this.#lead(next);
    this.#uncommitted.push(...old);
    for (const [from, proposal] of this.#homeless.splice(0))
      if (this.#random.chance(0.7)) this.#forward(from, proposal);
    this.#commit();
  }

  #lead(next: P | undefined): void {
    const former = this.leader;
    this.leader = next;
    this.#leading = next?.process;
    if (!next) return;
    next.process.receive(() => {
      this.#apply(next, this.#log.length);
      this.#onLeader(next, former);
    });
  }

  #areLinked(one: P, other: P): boolean {
    const [here, there] = [one.process.name, other.process.name];
    return !this.#network.isCut(here, there) && !this.#network.isCut(there, here);
  }
}

const isUp = ({ process }: Peer): boolean => !process.isStopped && !process.isKilled;

function quietly(apply: () => unknown): void {
  try {
    apply();
  } catch {
    // The member that proposed it reports the error.
  }
}
