import { encodeMachines, encodeMembers, encodeVersion, etcdJson, type Member } from '../../v2/wire.ts';

/** A page about the server itself. */
export interface Page {
  readonly methods: readonly string[];
  readonly type: 'application/json' | 'text/plain; charset=utf-8';
  /** Whether it names the cluster in its headers. */
  readonly ofCluster?: boolean;
  readonly body: () => string;
}

/** The version whose v2 API this is. */
const VERSION = { server: '3.4.23', cluster: '3.4.0' };

/**
 * What etcd tells of itself, by path; for a cluster of one member, its own leader.
 * @param counts how its operations went so far
 */
export function pagesAbout(member: Member, counts: () => object): ReadonlyMap<string, Page> {
  const startedAt = new Date();
  const { id, name } = member;
  const json = (body: () => string): Page => ({ methods: ['GET'], type: 'application/json', body });
  const text = (methods: readonly string[], body: () => string): Page => ({
    methods,
    type: 'text/plain; charset=utf-8',
    body,
  });
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
    ['/version', json(() => encodeVersion(VERSION))],
    ['/health', text(['GET'], () => '{"health":"true"}')],
    ['/v2/machines', text(['GET', 'HEAD'], () => encodeMachines([member]))],
    ['/v2/members', members],
    ['/v2/members/', members],
    ['/v2/members/leader', { ...json(() => etcdJson(member)), ofCluster: true }],
    ['/v2/stats/self', json(() => etcdJson(self()).trimEnd())],
    ['/v2/stats/store', json(() => etcdJson(counts()).trimEnd())],
    ['/v2/stats/leader', json(() => etcdJson({ leader: id, followers: {} }).trimEnd())],
  ]);
}
