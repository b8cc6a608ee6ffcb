import type { V3Gateway } from '../../../src/server/v3/gateway/gateway.ts';
import type { V3Member } from '../../../src/server/v3/member.ts';
import { LeaderClock } from './clocks.ts';
import { KeepAlives, type KeepAlivesOptions } from './keep-alives.ts';

export interface SharedV3Options extends KeepAlivesOptions {
  readonly clusterId: string;
  readonly urls: readonly string[];
  /** Number of changes that are kept. */
  readonly history: number;
}

/** The store of etcd v3, which all members share, and what answers for it. */
export class SharedV3 {
  readonly clock = new LeaderClock();
  readonly member: V3Member;
  readonly gateway: V3Gateway;
  readonly keepAlives: KeepAlives;

  constructor(options: SharedV3Options) {
    const { clusterId, urls, history, etcd, consensus } = options;
    const SimulatedMember = class extends etcd.V3Member {
      override headerAt(revision: bigint | undefined) {
        return { ...super.headerAt(revision), raft_term: BigInt(consensus().term) };
      }
    };
    this.member = new SimulatedMember({
      clusterId: BigInt(`0x${clusterId}`),
      memberId: 1n,
      name: 'etcd',
      clientURLs: urls,
      version: '3.4',
      clock: this.clock,
      history,
    });
    this.gateway = new etcd.V3Gateway(this.member);
    this.keepAlives = new KeepAlives(this.member, this.gateway, options);
  }
}
