import { randomUUID } from 'node:crypto';
import { EtcdKeyNotFound, EtcdUnusableAnswer } from '../../errors.ts';
import { Deadline } from '../../time.ts';
import type { Node } from '../../v2/keys-api.ts';
import { entriesAmong } from '../../v2/locks/reading.ts';
import { directoriesFrom } from '../../v2/locks/survey.ts';
import type { ClientSettings } from '../../v2/options.ts';
import { parseObject } from '../../v2/wire/json.ts';
import * as wire from '../../v2/wire.ts';
import { byDateHeader } from './clock.ts';
import type { EndpointFacts, Outcome } from './facts.ts';
import { MemberClient, outcomeOf, type TimedAnswer, unreachable } from './member.ts';
import { tryTestKey } from './test-key.ts';

/** Maximum number of quorum reads. Their median duration is reported. */
const READS = 3;

/** Timeout in seconds for the listing of all locks, which may be long. */
const LISTING_TIMEOUT = 15;

/** Measures one member. Takes about twice the read timeout, unless the listing of its locks takes longer. */
export async function probe(url: string, settings: ClientSettings): Promise<EndpointFacts> {
  const member = new MemberClient(url, settings);
  try {
    const info = await readInfo(member, settings);
    if (info.unreachable || !info.v2?.on) return info;
    return { ...info, ...(await tryOperations(member, settings, info)) };
  } finally {
    await member.destroy();
  }
}

/** Reads what the member reports about itself, with all requests in parallel. */
async function readInfo(member: MemberClient, { lockPrefix, readTimeout }: ClientSettings): Promise<EndpointFacts> {
  const deadline = Deadline.after(readTimeout);
  const info = (path: wire.InfoPath) => member.info(path, deadline).catch(asError);
  const listing = member
    .request(wire.encodeGet(lockPrefix, { recursive: true }), Deadline.after(LISTING_TIMEOUT))
    .catch(asError);
  const [version, health, self, leader, members, auth] = await Promise.all([
    info('/version'),
    info('/health'),
    info('/stats/self'),
    info('/members/leader'),
    info('/members'),
    info('/auth/enable'),
  ]);
  if (version instanceof Error) return { endpoint: member.url, unreachable: unreachable(version) };
  const locks = await listing;
  const { id, name } = objectOf(self) ?? {};
  return {
    endpoint: member.url,
    version: decoded(version, wire.decodeVersion),
    id: text(id),
    name: text(name),
    healthy: healthOf(health),
    leader: leaderOf(leader),
    members: decoded(members, wire.decodeMembers),
    clusterId: [locks, members].map((answer) => decoded(answer, wire.clusterIdOf)).find((found) => found),
    auth: truth(objectOf(auth)?.['enabled']),
    clock: byDateHeader(version),
    ...keysOf(locks, lockPrefix),
  };
}

/** Tries the operations that locks need, all in parallel. */
async function tryOperations(
  member: MemberClient,
  settings: ClientSettings,
  { auth, clock }: EndpointFacts,
): Promise<Partial<EndpointFacts>> {
  const deadline = Deadline.after(settings.readTimeout);
  // A read and a removal of a key that does not exist: they test the permissions and change nothing.
  const absent = `${settings.lockPrefix}/${randomUUID()}`;
  const [reading, write, guest, test] = await Promise.all([
    measureReads(member, absent, deadline, settings.readTimeout / 2),
    tryWrite(member, absent, deadline),
    auth && settings.authorization !== undefined ? tryAsGuest(member.url, settings, absent, deadline) : undefined,
    tryTestKey(member, deadline),
  ]);
  return { ...reading, write, guest, ...test, clock: test.clock ?? clock };
}

/**
 * Measures quorum reads.
 * @param least seconds that must remain before another read starts, so that the deadline does not abort the read
 */
async function measureReads(member: MemberClient, key: string, deadline: Deadline, least: number) {
  const times: number[] = [];
  const readOnce = async (): Promise<void> => {
    const answer = await member.request(wire.encodeGet(key, { quorum: true }), deadline);
    times.push(answer.answeredAt - answer.sentAt);
    wire.decodeSnapshot(answer, key);
  };
  let read: Outcome;
  do read = await outcomeOf(readOnce());
  while (read.is === 'done' && times.length < READS && deadline.remaining > least * 1000);
  const [median] = times.sort((a, b) => a - b).slice(Math.floor(times.length / 2));
  return { read, quorumReadMs: read.is === 'done' ? median : undefined };
}

const tryWrite = (member: MemberClient, key: string, deadline: Deadline): Promise<Outcome> =>
  outcomeOf(
    member
      .request(wire.encodeDelete(key, { prevValue: 'doctor' }), deadline)
      .then((answer) => wire.decodeChange(answer, key)),
  );

/** Returns whether unauthenticated clients can read and write locks. */
async function tryAsGuest(url: string, settings: ClientSettings, key: string, deadline: Deadline) {
  const guest = new MemberClient(url, { ...settings, authorization: undefined });
  try {
    const [read, write] = await Promise.all([
      outcomeOf(guest.request(wire.encodeGet(key), deadline).then((answer) => wire.decodeSnapshot(answer, key))),
      tryWrite(guest, key, deadline),
    ]);
    return { read: read.is === 'done', write: write.is === 'done' };
  } finally {
    await guest.destroy();
  }
}

function keysOf(answer: TimedAnswer | Error, key: string): Pick<EndpointFacts, 'v2' | 'ttls'> {
  if (answer instanceof Error) return { v2: undefined };
  try {
    return { v2: { on: true }, ttls: ttlsBelow(wire.decodeSnapshot(answer, key).node) };
  } catch (error) {
    if (error instanceof EtcdUnusableAnswer)
      return { v2: { on: false, absent: error.httpStatus === 404, message: error.message } };
    if (!(error instanceof EtcdKeyNotFound)) return { v2: { on: true } }; // the operations that locks need are tried next
    if (answer.headers['x-etcd-index'] !== undefined) return { v2: { on: true }, ttls: [] };
    return {
      v2: {
        on: false,
        absent: false,
        message: 'the answer has no X-Etcd-Index header (a proxy may have removed it)',
      },
    };
  }
}

const ttlsBelow = (node: Node): number[] =>
  directoriesFrom(node).flatMap(({ nodes }) => entriesAmong(nodes).flatMap(({ ttl }) => ttl ?? []));

function healthOf(answer: TimedAnswer | Error): boolean | undefined {
  const health = objectOf(answer)?.['health'];
  // etcd sends a string; a boolean is accepted, too.
  return truth(typeof health === 'string' ? health === 'true' : health);
}

/** Returns the id of the leader; null for status 503: no leader. Unlike `/stats/self`, this answer is never out of date. */
function leaderOf(answer: TimedAnswer | Error): string | null | undefined {
  if (answer instanceof Error) return undefined;
  return answer.status === 503 ? null : text(objectOf(answer)?.['id']);
}

function decoded<T>(answer: TimedAnswer | Error, decode: (answer: TimedAnswer) => T): T | undefined {
  try {
    return answer instanceof Error ? undefined : decode(answer);
  } catch {
    return undefined;
  }
}

const objectOf = (answer: TimedAnswer | Error) => (answer instanceof Error ? undefined : parseObject(answer.body));

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const truth = (value: unknown): boolean | undefined => (typeof value === 'boolean' ? value : undefined);
const asError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
