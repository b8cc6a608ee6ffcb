import type { WireReply } from '../../../v2/wire.ts';
import * as errors from '../errors.ts';
import * as answers from './answers.ts';
import { type Asked, accessOf } from './call.ts';
import { encode } from './encode.ts';
import { LEASE_REQUEST, LEASE_RESPONSE } from './kinds.ts';
import { requestsIn } from './requests.ts';

/** Maximum number of requests in one body: a short request has a long answer. etcd reads about 8 kB of them. */
const MOST_REQUESTS = 10_000;

/**
 * Renews the leases that a body names. Answers by a line for each, up to the first request that cannot be read or is refused.
 * @throws {EtcdV3Refusal} if the first one cannot be read; etcd 3.6 ends in silence then
 */
export function keepAlive(body: string, asked: Asked): WireReply {
  const { version } = asked.member;
  const { requests, isEmpty, error } = requestsIn(LEASE_REQUEST, body, asked.decode);
  if (isEmpty) {
    if (error && version !== '3.6') throw error;
    return answers.nothing(version);
  }
  const lines: string[] = [];
  for (const { ID } of requests) {
    try {
      if (lines.length === MOST_REQUESTS) throw errors.tooManyRequests(MOST_REQUESTS);
      lines.push(renew(ID, asked));
    } catch (refusal) {
      if (!(refusal instanceof errors.EtcdV3Refusal)) throw refusal;
      return answers.streamFailure(lines, refusal, version);
    }
  }
  return answers.success(lines.join(''));
}

/** @throws {EtcdV3Refusal} from etcd 3.5 on, if the user may not remove the keys of the lease */
function renew(ID: bigint, asked: Asked): string {
  const { member } = asked;
  if (member.version !== '3.4') accessOf(asked).renewLease(ID);
  return answers.result(encode(LEASE_RESPONSE, { header: member.header, ID, TTL: member.store.leases.keepAlive(ID) }));
}
