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
import { AskedMember, outcomeOf, type TimedAnswer, unreachable } from './member.ts';
import { tryTestKey } from './test-key.ts';

/** How many quorum reads the time is the median of. */
const READS = 3;

/** Asks one member everything, in no more than about twice the read timeout, however silent it is. */
export async function probe(url: string, settings: ClientSettings): Promise<EndpointFacts> {
  const member = new AskedMember(url, settings);
  try {
    const told = await askAll(member, settings);
    if (told.unreachable || !told.v2?.on) return told;
    return { ...told, ...(await tryAll(member, settings, told)) };
  } finally {
    await member.destroy();
  }
}

/** What it tells of itself, each asked at the same time. */
async function askAll(member: AskedMember, { lockPrefix, readTimeout }: ClientSettings): Promise<EndpointFacts> {
  const deadline = Deadline.after(readTimeout);
  const info = (path: wire.InfoPath) => member.info(path, deadline).catch(asError);
  const [version, health, self, leader, members, auth, locks] = await Promise.all([
    info('/version'),
    info('/health'),
    info('/stats/self'),
    info('/members/leader'),
    info('/members'),
    info('/auth/enable'),
    member.ask(wire.encodeGet(lockPrefix, { recursive: true }), deadline).catch(asError),
  ]);
  if (version instanceof Error) return { endpoint: member.url, unreachable: unreachable(version) };
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

/** What it does when asked for what locks need, each tried at the same time. */
async function tryAll(
  member: AskedMember,
  settings: ClientSettings,
  { auth, clock }: EndpointFacts,
): Promise<Partial<EndpointFacts>> {
  const deadline = Deadline.after(settings.readTimeout);
  // What is not there can be read and removed by whoever may read and write there.
  const absent = `${settings.lockPrefix}/${randomUUID()}`;
  const [reading, write, guest, test] = await Promise.all([
    timeReads(member, absent, deadline, settings.readTimeout / 2),
    writes(member, absent, deadline),
    auth && settings.authorization !== undefined ? asGuest(member.url, settings, absent, deadline) : undefined,
    tryTestKey(member, deadline),
  ]);
  return { ...reading, write, guest, ...test, clock: test.clock ?? clock };
}

/** @param least seconds that must be left for a further one, so that it is not cut off for those before it */
async function timeReads(member: AskedMember, key: string, deadline: Deadline, least: number) {
  const times: number[] = [];
  const readOnce = async (): Promise<void> => {
    const answer = await member.ask(wire.encodeGet(key, { quorum: true }), deadline);
    times.push(answer.answeredAt - answer.sentAt);
    wire.decodeSnapshot(answer, key);
  };
  let read: Outcome;
  do read = await outcomeOf(readOnce());
  while (read.is === 'done' && times.length < READS && deadline.remaining > least * 1000);
  const [median] = times.sort((a, b) => a - b).slice(Math.floor(times.length / 2));
  return { read, quorumReadMs: read.is === 'done' ? median : undefined };
}

const writes = (member: AskedMember, key: string, deadline: Deadline): Promise<Outcome> =>
  outcomeOf(
    member
      .ask(wire.encodeDelete(key, { prevValue: 'doctor' }), deadline)
      .then((answer) => wire.decodeChange(answer, key)),
  );

/** Whether locks are open to whoever has no password. */
async function asGuest(url: string, settings: ClientSettings, key: string, deadline: Deadline) {
  const guest = new AskedMember(url, { ...settings, authorization: undefined });
  try {
    const [read, write] = await Promise.all([
      outcomeOf(guest.ask(wire.encodeGet(key), deadline).then((answer) => wire.decodeSnapshot(answer, key))),
      writes(guest, key, deadline),
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
      return { v2: { on: false, absent: error.status === 404, message: error.message } };
    if (!(error instanceof EtcdKeyNotFound)) return { v2: { on: true } }; // what locks need is tried next
    if (answer.headers['x-etcd-index'] !== undefined) return { v2: { on: true }, ttls: [] };
    return { v2: { on: false, absent: false, message: 'its answers have no X-Etcd-Index (does a proxy drop it?)' } };
  }
}

const ttlsBelow = (node: Node): number[] =>
  directoriesFrom(node).flatMap(({ nodes }) => entriesAmong(nodes).flatMap(({ ttl }) => ttl ?? []));

function healthOf(answer: TimedAnswer | Error): boolean | undefined {
  const health = objectOf(answer)?.['health'];
  // A text until today; who knows.
  return truth(typeof health === 'string' ? health === 'true' : health);
}

/** Unlike what `/stats/self` says this is never of the past: 503 while there is none. */
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
