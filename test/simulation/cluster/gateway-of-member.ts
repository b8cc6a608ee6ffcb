import type { Gateway, GatewayRequest, SingleAnswer, Stream, StreamOutput } from '../../../src/server/front/gateway.ts';
import type { V3Gateway } from '../../../src/server/v3/gateway/gateway.ts';
import type { V3Store } from '../../../src/server/v3/store/store.ts';
import { range } from '../../server/v3/requests.ts';
import { rewritten } from '../network/requests.ts';
import type { Random } from '../virtual/random.ts';
import { type Consensus, TimedOut } from './consensus.ts';
import type { Counts } from './counts.ts';
import type { KeepAlives } from './keep-alives.ts';
import type { HungUp, LateWrites } from './late-writes.ts';
import type { Member } from './member.ts';
import type * as etcd from './server.ts';

const UNAVAILABLE = 14;
const NO_LEADER = 'etcdserver: no leader';
const TIMED_OUT = 'etcdserver: request timed out';

/** Milliseconds that a watch lags behind the store at most, unless its member is cut off. */
const LAG = 5;

/** Milliseconds that a login takes: etcd makes the check of a password expensive. */
const LOGIN: readonly [number, number] = [90, 230];

/** Milliseconds until etcd looks again after a watch that has fallen behind. */
const CATCH_UP = 100;

/** Milliseconds without a leader after which a member ends watches that need one. */
const END_WATCH: readonly [number, number] = [3400, 3700];

/** Milliseconds between two looks whether a member that was cut off is in touch again. */
const LOOK = 50;

interface GatewayOfMemberOptions {
  readonly etcd: typeof etcd;
  readonly gateway: V3Gateway;
  readonly store: V3Store;
  readonly keepAlives: KeepAlives;
  readonly consensus: Consensus<Member>;
  readonly random: Random;
  readonly counts: Counts;
  readonly requests: HungUp;
  readonly late: LateWrites;
  /** Called with the key of an entry that a later write of it has created. */
  readonly onCreatedAgain: (key: string) => void;
}

/**
 * The gateway of etcd v3 at one member. All members share one store: each read and write is carried out at one moment between its request and
 * its answer, which is what clients of a linearizable store can see. Watches lag behind, each at its member.
 */
export class GatewayOfMember implements Gateway {
  readonly bodyLimit: Gateway['bodyLimit'];
  readonly root: string;
  readonly #etcd: typeof etcd;
  readonly #gateway: V3Gateway;
  readonly #store: V3Store;
  readonly #keepAlives: KeepAlives;
  readonly #member: Member;
  readonly #consensus: Consensus<Member>;
  readonly #random: Random;
  readonly #counts: Counts;
  readonly #requests: HungUp;
  readonly #late: LateWrites;
  readonly #onCreatedAgain: (key: string) => void;

  constructor(member: Member, options: GatewayOfMemberOptions) {
    const {
      etcd: server,
      gateway,
      store,
      keepAlives,
      consensus,
      random,
      counts,
      requests,
      late,
      onCreatedAgain,
    } = options;
    this.bodyLimit = gateway.bodyLimit;
    this.root = gateway.root;
    this.#etcd = server;
    this.#gateway = gateway;
    this.#store = store;
    this.#keepAlives = keepAlives;
    this.#member = member;
    this.#consensus = consensus;
    this.#random = random;
    this.#counts = counts;
    this.#requests = requests;
    this.#late = late;
    this.#onCreatedAgain = onCreatedAgain;
  }

  serves(path: string): boolean {
    return this.#gateway.serves(path);
  }

  overloaded(why: string) {
    return this.#gateway.overloaded(why);
  }

  async answer(request: GatewayRequest): Promise<SingleAnswer | Stream> {
    const body = await request.body;
    const asked = { ...request, headers: this.#headersOf(request), body: Promise.resolve(body) };
    if (request.path.endsWith('/auth/authenticate')) await this.#pause(...LOGIN);
    const needsLeader = request.headers['grpc-metadata-hasleader'] !== undefined;
    if (needsLeader && !this.#consensus.leaderOf(this.#member)) return this.#refuse(NO_LEADER);
    if (request.path.endsWith('/lease/keepalive'))
      return (await this.#keepAlives.answer(this.#member, request, body)) ?? this.#refuse(TIMED_OUT);
    if (request.path.endsWith('/maintenance/status')) return this.#gateway.answer(asked);
    if (request.path.endsWith('/watch')) return this.#watch((await this.#gateway.answer(asked)) as Stream, needsLeader);
    let answer: Promise<SingleAnswer | Stream> | undefined;
    try {
      return await this.#consensus.propose(this.#member, () => {
        // The first member that applies it carries it out.
        answer ??= this.#carryOut(asked, body, this.#requests.has(request.headers));
        return answer;
      });
    } catch (error) {
      if (error instanceof TimedOut) return this.#refuse(TIMED_OUT);
      throw error;
    }
  }

  /** Replaces a token that the member has forgotten by one that no member knows. */
  #headersOf({ headers }: GatewayRequest): GatewayRequest['headers'] {
    const { authorization } = headers;
    if (authorization === undefined || !this.#member.tokens.hasForgotten(authorization)) return headers;
    return { ...headers, authorization: 'forgotten' };
  }

  #pause(least: number, most: number): Promise<void> {
    return new Promise((resolve) => void this.#member.process.after(this.#random.between(least, most), resolve));
  }

  async #carryOut(request: GatewayRequest, body: string, isLate: boolean): Promise<SingleAnswer | Stream> {
    const { revision } = this.#store;
    const answer = await this.#gateway.answer(request);
    const key = rewritten(body);
    if (key !== undefined && isCreatedSince(this.#store, revision, key)) this.#onCreatedAgain(key);
    if (isLate && 'isWrite' in answer && answer.isWrite) this.#late.count();
    return answer;
  }

  #refuse(message: string): SingleAnswer {
    const refusal = new this.#etcd.EtcdV3Refusal(UNAVAILABLE, message);
    return { reply: this.#etcd.failure(refusal, '3.4'), isWrite: false };
  }

  #watch(stream: SingleAnswer | Stream, needsLeader: boolean): SingleAnswer | Stream {
    if (!('open' in stream)) return stream;
    const { EtcdV3Refusal, lastLine, CLOSED_HALF } = this.#etcd;
    const open: Stream['open'] = (output) => {
      const end = stream.open(this.#lagging(output));
      const stop = this.#onceLeaderless(() => {
        this.#counts.endedWatches += 1;
        // Ends it by its last line.
        output.fail(CLOSED_HALF);
      });
      return () => {
        stop();
        end();
      };
    };
    if (!needsLeader) return { ...stream, open: (output) => stream.open(this.#lagging(output)) };
    return { ...stream, lastLine: lastLine(new EtcdV3Refusal(UNAVAILABLE, NO_LEADER), '3.4'), open };
  }

  /** Calls `then` when the member has had no leader for so long that etcd ends watches. Returns what cancels that. */
  #onceLeaderless(then: () => void): () => void {
    const { process } = this.#member;
    const patience = this.#random.between(...END_WATCH);
    const left = (): number => patience - this.#consensus.silenceAt(this.#member);
    let cancel = (): void => {};
    const look = (): void => {
      cancel = process.after(Math.max(left(), LOOK), () => {
        if (left() > 0 || this.#consensus.leaderOf(this.#member)) look();
        else then();
      });
    };
    look();
    return () => cancel();
  }

  #lag(): number {
    return this.#random.between(0, this.#random.chance(0.1) ? CATCH_UP : LAG);
  }

  /** Each line waits until the member has applied what it reports. */
  #lagging(output: StreamOutput): StreamOutput {
    const { process } = this.#member;
    const lines: string[] = [];
    const pass = (): void => {
      process.after(this.#consensus.isLed(this.#member) ? this.#lag() : LOOK, () => {
        if (!this.#consensus.isLed(this.#member)) return pass();
        const line = lines.shift();
        if (line?.includes('"compact_revision"')) this.#counts.compactedWatches += 1;
        if (line !== undefined) output.send(line);
        if (lines.length > 0) pass();
      });
    };
    return {
      send: (line) => {
        if (lines.push(line) === 1) pass();
      },
      get isReady() {
        return output.isReady;
      },
      ready: () => output.ready(),
      fail: (reason) => output.fail(reason),
      take: (bytes) => output.take(bytes),
      give: (bytes) => output.give(bytes),
    };
  }
}

/** Whether a write since that revision has created the key of an entry: it was gone. */
function isCreatedSince(store: V3Store, revision: bigint, key: string): boolean {
  if (!key.startsWith('/_locks/')) return false;
  const [found] = store.range(range({ key })).kvs;
  return found !== undefined && found.create_revision > revision;
}
