import { Deadline } from '../../../base/time.ts';
import { EtcdKeyNotFound, EtcdUnusableAnswer } from '../../../errors.ts';
import type { Node } from '../../../v2/keys-api.ts';
import { entriesAmong } from '../../../v2/locks/reading.ts';
import { directoriesFrom } from '../../../v2/locks/survey.ts';
import * as wire from '../../../v2/wire.ts';
import type { EndpointFacts } from '../facts.ts';
import { LISTING_TIMEOUT, READ_TIMEOUT } from '../limits.ts';
import type { MemberClient, TimedAnswer } from '../member.ts';
import { asError } from '../outcomes.ts';

/** Lists all locks, as this member has them. Returns an error also for a lock prefix that is possible only on etcd v3. */
export async function listLocks(member: MemberClient, lockPrefix: string): Promise<TimedAnswer | Error> {
  try {
    const request = wire.encodeGet(lockPrefix, { recursive: true });
    return await member.request(request, Deadline.after(LISTING_TIMEOUT));
  } catch (error) {
    return asError(error);
  }
}

/** Lists the keys and directories at the top of the v2 store, as this member has them; undefined if it refuses that. */
export async function listTop(member: MemberClient): Promise<readonly string[] | undefined> {
  try {
    const answer = await member.request(wire.encodeGet('/'), Deadline.after(READ_TIMEOUT));
    return wire.decodeSnapshot(answer, '/').node.nodes.map(({ key }) => key);
  } catch {
    return undefined;
  }
}

/** Returns what the listing of all locks shows. It also shows whether the member has the v2 API. */
export function locksIn(answer: TimedAnswer | Error, lockPrefix: string): Pick<EndpointFacts, 'v2' | 'ttls' | 'locks'> {
  if (answer instanceof Error) return { v2: undefined };
  try {
    return { v2: { on: true }, ...locksBelow(wire.decodeSnapshot(answer, lockPrefix).node, lockPrefix) };
  } catch (error) {
    if (error instanceof EtcdUnusableAnswer)
      return { v2: { on: false, absent: error.httpStatus === 404, message: error.message } };
    if (!(error instanceof EtcdKeyNotFound)) return { v2: { on: true } }; // the API has answered with an error
    if (answer.headers['x-etcd-index'] !== undefined) return { v2: { on: true }, ttls: [], locks: { v2: [] } };
    return {
      v2: {
        on: false,
        absent: false,
        message: 'the answer has no X-Etcd-Index header (a proxy may have removed it)',
      },
    };
  }
}

function locksBelow(top: Node, lockPrefix: string): Pick<EndpointFacts, 'ttls' | 'locks'> {
  const queues = directoriesFrom(top)
    .map(({ key, nodes }) => ({ name: key.slice(lockPrefix.length + 1), entries: entriesAmong(nodes) }))
    .filter(({ entries }) => entries.length > 0);
  return {
    ttls: queues.flatMap(({ entries }) => entries.flatMap(({ ttl }) => ttl ?? [])),
    locks: { v2: queues.flatMap(({ name }) => (name === '' ? [] : name)).sort() },
  };
}
