import {
  encodeMachines,
  encodeMembers,
  encodeVersion,
  etcdJson,
  type MemberInfo,
  type WireReply,
} from '../../v2/wire.ts';
import { type EtcdVersion, RELEASES } from '../version.ts';

/** A page about the server itself. */
export interface Page {
  readonly methods: readonly string[];
  /** Whether the answer's headers contain the cluster id. Default false. */
  readonly ofCluster?: boolean;
  readonly reply: () => WireReply | Promise<WireReply>;
}

/**
 * Returns the pages that describe the server itself, by path. The cluster has one member, which is the leader.
 * @param counts returns the counters for `/v2/stats/store`
 */
export function pagesAbout(member: MemberInfo, version: EtcdVersion, counts: () => object): ReadonlyMap<string, Page> {
  const startedAt = new Date();
  const { id, name } = member;
  const release = RELEASES[version];
  const page = (type: string, methods: readonly string[], body: () => string): Page => ({
    methods,
    reply: () => ({ status: 200, headers: { 'Content-Type': type }, body: body() }),
  });
  const json = (body: () => string): Page => page('application/json', ['GET'], body);
  const text = (methods: readonly string[], body: () => string): Page =>
    page('text/plain; charset=utf-8', methods, body);
  const self = () => ({
    name,
    id,
    state: 'StateLeader',
    startTime: startedAt.toISOString(),
    leaderInfo: {
      leader: id,
      uptime: `${(Date.now() - startedAt.getTime()) / 1000}s`,
      startTime: startedAt.toISOString(),
    },
    recvAppendRequestCnt: 0,
    sendAppendRequestCnt: 0,
  });
  const members = { ...json(() => encodeMembers([member])), ofCluster: true };
  return new Map([
    ['/version', json(() => encodeVersion(release, version === '3.6' ? release.cluster : undefined))],
    ['/health', text(['GET'], () => (version === '3.4' ? '{"health":"true"}' : '{"health":"true","reason":""}'))],
    ['/v2/machines', text(['GET', 'HEAD'], () => encodeMachines([member]))],
    ['/v2/members', members],
    ['/v2/members/', members],
    ['/v2/members/leader', { ...json(() => etcdJson(member)), ofCluster: true }],
    ['/v2/stats/self', json(() => etcdJson(self()).trimEnd())],
    ['/v2/stats/store', json(() => etcdJson(counts()).trimEnd())],
    ['/v2/stats/leader', json(() => etcdJson({ leader: id, followers: {} }).trimEnd())],
  ]);
}
