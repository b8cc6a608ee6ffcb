import type { GatewayRequest, SingleAnswer, Stream } from '../../../src/server/front/gateway.ts';
import type { V3Gateway } from '../../../src/server/v3/gateway/gateway.ts';
import type { V3Member } from '../../../src/server/v3/member.ts';
import type { Network } from '../network/network.ts';
import type { Random } from '../virtual/random.ts';
import { type Consensus, GIVE_UP } from './consensus.ts';
import type { Counts } from './counts.ts';
import { type Former, formerLeader } from './former-leader.ts';
import type { Member } from './member.ts';
import type * as etcd from './server.ts';

/** Milliseconds after which a member asks again who leads. */
const RETRY = 50;

type Answer = SingleAnswer | Stream;

export interface KeepAlivesOptions {
  readonly etcd: typeof etcd;
  readonly consensus: () => Consensus<Member>;
  readonly network: Network;
  readonly random: Random;
  readonly counts: Counts;
}

/**
 * The keep-alives of etcd v3. A member that believes to lead answers them alone, without the agreement of the others; another one passes
 * them on to the leader that it knows.
 */
export class KeepAlives {
  readonly #options: KeepAlivesOptions;
  readonly #v3: V3Member;
  readonly #gateway: V3Gateway;
  readonly #former = new Map<Member, Former>();

  constructor(v3: V3Member, gateway: V3Gateway, options: KeepAlivesOptions) {
    this.#v3 = v3;
    this.#gateway = gateway;
    this.#options = options;
  }

  /** Call this before another member leads. */
  replaced(leader: Member, term: number): void {
    this.#former.set(leader, formerLeader(leader, this.#v3, { term, isAsleep: this.#options.random.chance(0.5) }));
  }

  /** Returns what a member knows that was the leader; undefined if it was not, or was restarted. */
  formerAt(member: Member): Former | undefined {
    const former = this.#former.get(member);
    return former?.process === member.process ? former : undefined;
  }

  /** Answers at a member. Resolves to undefined after 7 s without an answer of a leader. */
  answer(at: Member, request: GatewayRequest, body: string): Promise<Answer | undefined> {
    const { consensus, network, counts } = this.#options;
    const { process } = at;
    return new Promise((resolve) => {
      let isOver = false;
      const settle = (answer: Answer | undefined): void => {
        isOver = true;
        resolve(answer);
      };
      process.after(GIVE_UP, () => {
        if (isOver) return;
        counts.hungKeepAlives += 1;
        settle(undefined);
      });
      const take = (answer: Answer | undefined): void => {
        if (answer) settle(answer);
        else process.after(RETRY, ask);
      };
      const askLeader = (leader: Member): void => {
        const back = (answer: Answer | undefined): void =>
          network.send(leader.name, at.name, () => process.receive(() => take(answer)));
        network.send(at.name, leader.name, () => {
          if (leader.process.isKilled) back(undefined);
          else leader.process.receive(() => void this.#renew(leader, request, body).then(back));
        });
      };
      const ask = (): void => {
        if (isOver) return;
        const leader = consensus().leaderOf(at);
        if (!leader) take(undefined);
        else if (leader === at) void this.#renew(at, request, body).then(take);
        else askLeader(leader);
      };
      ask();
    });
  }

  /** Resolves to undefined if the member does not believe to lead, or waits for the revocation of a lease that has expired. */
  async #renew(at: Member, request: GatewayRequest, body: string): Promise<Answer | undefined> {
    const { consensus, counts } = this.#options;
    if (consensus().leaderOf(at) !== at) return undefined;
    const ID = BigInt((JSON.parse(body) as { ID: string }).ID);
    if (consensus().isLeading(at)) {
      const { leases } = this.#v3.store;
      if (leases.has(ID) && leases.keepAlive(ID) === 0n) return undefined;
      if (!consensus().hasQuorum(at)) counts.keepAlivesWithoutQuorum += 1;
      return this.#gateway.answer({ ...request, body: Promise.resolve(body) });
    }
    const former = this.formerAt(at);
    if (!former) return undefined;
    return this.#stale(former, ID);
  }

  /** The answer of a leader that does not know that there is another one. It extends nothing. */
  #stale(former: Former, ID: bigint): Answer | undefined {
    const { etcd, counts } = this.#options;
    const lease = former.leases.get(ID);
    if (lease && former.hasExpired(lease)) return undefined;
    counts.staleKeepAlives += 1;
    if (lease && !this.#v3.store.leases.has(ID)) counts.staleKeepAlivesOfDeadLeases += 1;
    const header = { ...this.#v3.headerAt(former.revision), raft_term: BigInt(former.term) };
    const message = etcd.encode(etcd.LEASE_RESPONSE, { header, ID, TTL: lease?.ttl ?? 0n });
    return { reply: etcd.success(etcd.result(message)), isWrite: true };
  }
}
