import type { Deadline } from '../../../base/time.ts';
import { EtcdConnectionFailed, EtcdUnusableAnswer } from '../../../errors.ts';
import type { MemberInfo } from '../../../v2/wire.ts';
import { decodeBody } from '../../../v3/gateway/errors.ts';
import { decodeHeader, Fields } from '../../../v3/gateway/messages.ts';
import { gatewayPrefix } from '../../../v3/gateway/version.ts';
import type { EndpointFacts, Presence } from '../facts.ts';
import type { MemberClient, TimedAnswer } from '../member.ts';
import { asError } from '../outcomes.ts';

type GatewayFacts = Pick<EndpointFacts, 'v3' | 'id' | 'name' | 'leader' | 'members' | 'clusterId' | 'healthy'>;

/**
 * Reads what a member reports about itself and its cluster through its gateway. etcd needs no credentials for this.
 * @param version the member's answer to `GET /version`
 */
export async function readGateway(
  member: MemberClient,
  version: TimedAnswer,
  deadline: Deadline,
): Promise<GatewayFacts> {
  try {
    const prefix = gatewayPrefix(version);
    const ask = async (path: string): Promise<Fields> => {
      const request = { method: 'POST', path: prefix + path, query: '', json: '{}', unversioned: true } as const;
      const answer = await member.request(request, deadline);
      return new Fields(answer, decodeBody(answer));
    };
    const [status, members] = await Promise.all([
      ask('/maintenance/status').then(statusIn),
      ask('/cluster/member/list').then(membersIn, () => undefined),
    ]);
    const name = members?.find(({ id }) => id === status.id)?.name;
    return { v3: { on: true }, ...status, name, members };
  } catch (error) {
    return { v3: presenceBy(asError(error)) };
  }
}

/**
 * Ids are shown in hex digits, as in etcd v2 and in etcdctl. The health is taken from the status and not from `GET /health`, which is a
 * write of etcd v2 if the member has that API: etcd 3.6 would panic at it.
 */
function statusIn(status: Fields): Pick<GatewayFacts, 'id' | 'leader' | 'clusterId' | 'healthy'> {
  const leader = status.unsigned('leader');
  return {
    healthy: status.texts('errors').length === 0,
    id: hex(status.message('header').unsigned('member_id')),
    leader: leader === 0n ? null : hex(leader),
    clusterId: decodeHeader(status).clusterId,
  };
}

const membersIn = (list: Fields): MemberInfo[] =>
  list.list('members').map((member) => ({
    id: hex(member.unsigned('ID')),
    name: member.text('name'),
    peerURLs: member.texts('peerURLs'),
    clientURLs: member.texts('clientURLs'),
  }));

/** Returns whether there is a gateway, by the error of a request to it; undefined if it did not answer. */
function presenceBy(error: Error): Presence | undefined {
  if (error instanceof EtcdUnusableAnswer)
    return { on: false, absent: error.httpStatus === 404, message: error.message };
  const isSilent = error instanceof EtcdConnectionFailed && error.httpStatus === undefined;
  return isSilent ? undefined : { on: true };
}

const hex = (id: bigint): string => id.toString(16);
