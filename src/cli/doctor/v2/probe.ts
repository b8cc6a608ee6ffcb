import { randomUUID } from 'node:crypto';
import { Deadline } from '../../../base/time.ts';
import type { ClientSettings } from '../../../v2/options.ts';
import { parseObject } from '../../../v2/wire/json.ts';
import * as wire from '../../../v2/wire.ts';
import type { Access } from '../access.ts';
import type { EndpointFacts, Outcome } from '../facts.ts';
import { healthOf } from '../health.ts';
import { LISTING_TIMEOUT, READ_TIMEOUT } from '../limits.ts';
import { MemberClient, type TimedAnswer, unreachable } from '../member.ts';
import { asError, outcomeOf } from '../outcomes.ts';
import { measureReads } from '../reads.ts';
import { readGateway } from '../v3/gateway.ts';
import { namesOnV3 } from '../v3/store.ts';
import { versionOf } from '../version.ts';
import { byDateHeader } from './clock.ts';
import { listLocks, locksIn } from './locks.ts';
import { tryTestKey } from './test-key.ts';

/** Reads what one member reports about itself. Sends no request that is a write of etcd v2: not even a read by quorum. */
export async function readMember(url: string, { settings }: Access): Promise<EndpointFacts> {
  const member = new MemberClient(url, settings);
  try {
    return await readInfo(member, settings);
  } finally {
    await member.destroy();
  }
}

/** Which requests may be sent that are writes of etcd v2. Only a test key changes anything. */
export type TrialOfV2 = 'none' | 'without test key' | 'with test key';

/** Measures one member further. Takes at most about twice the read timeout, unless a listing of locks takes longer. */
export async function probe(info: EndpointFacts, access: Access, trial: TrialOfV2): Promise<EndpointFacts> {
  if (info.unreachable) return info;
  const url = info.endpoint;
  const operations: Partial<EndpointFacts> =
    trial !== 'none' && info.v2?.on ? await tryLocks(url, access, info, trial) : {};
  // Without a quorum, etcd v3 would not answer.
  const canRead = info.v3?.on && operations.read?.is !== 'failed';
  const v3 = canRead ? await namesOnV3(url, access, Deadline.after(LISTING_TIMEOUT)) : undefined;
  return { ...info, ...operations, locks: { ...info.locks, ...(v3 && { v3 }) } };
}

/** Reads what the member reports about itself, in parallel; but the gateway only after `/version`. */
async function readInfo(member: MemberClient, { lockPrefix }: ClientSettings): Promise<EndpointFacts> {
  const deadline = Deadline.after(READ_TIMEOUT);
  const info = (path: wire.InfoPath) => member.info(path, deadline).catch(asError);
  const listing = listLocks(member, lockPrefix);
  const askVersion = async () => {
    const version = await info('/version');
    return { version, gateway: version instanceof Error ? {} : await readGateway(member, version, deadline) };
  };
  const [{ version, gateway }, self, leader, members, auth] = await Promise.all([
    askVersion(),
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
    version: versionOf(version),
    id: text(id),
    name: text(name),
    leader: leaderOf(leader),
    members: decoded(members, wire.decodeMembers),
    clusterId: [locks, members].map((answer) => decoded(answer, wire.clusterIdOf)).find((found) => found),
    auth: truth(objectOf(auth)?.['enabled']),
    clock: byDateHeader(version),
    v3: gateway.v3,
    ...locksIn(locks, lockPrefix),
  };
}

async function tryLocks(
  url: string,
  { settings }: Access,
  info: EndpointFacts,
  trial: TrialOfV2,
): Promise<Partial<EndpointFacts>> {
  const member = new MemberClient(url, settings);
  try {
    return await tryOperations(member, settings, info, trial);
  } finally {
    await member.destroy();
  }
}

/** Tries the operations that locks need, all in parallel. The health check of etcd v2 is one of them: it reads by quorum. */
async function tryOperations(
  member: MemberClient,
  settings: ClientSettings,
  { auth, clock }: EndpointFacts,
  trial: TrialOfV2,
): Promise<Partial<EndpointFacts>> {
  const deadline = Deadline.after(READ_TIMEOUT);
  // A read and a removal of a key that does not exist: they test the permissions and change nothing.
  const absent = `${settings.lockPrefix}/${randomUUID()}`;
  const readOnce = async (took: (milliseconds: number) => void): Promise<void> => {
    const answer = await member.request(wire.encodeGet(absent, { quorum: true }), deadline);
    took(answer.answeredAt - answer.sentAt);
    wire.decodeSnapshot(answer, absent);
  };
  const [health, reading, write, guest, test] = await Promise.all([
    member.info('/health', deadline).catch(asError),
    measureReads(readOnce, deadline, READ_TIMEOUT / 2),
    tryWrite(member, absent, deadline),
    auth && settings.authorization !== undefined ? tryAsGuest(member.url, settings, absent, deadline) : undefined,
    trial === 'with test key' ? tryTestKey(member, deadline) : undefined,
  ]);
  return { healthy: healthOf(health), ...reading, write, guest, ...test, clock: test?.clock ?? clock };
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
