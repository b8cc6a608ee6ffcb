import { Deadline } from '../../../base/time.ts';
import type { V3Client } from '../../../v3/client.ts';
import { type Access, hasCredentials, withClient, withoutCredentials } from '../access.ts';
import type { EndpointFacts } from '../facts.ts';
import { LISTING_TIMEOUT, READ_TIMEOUT } from '../limits.ts';
import { MemberClient, unreachable } from '../member.ts';
import { asError } from '../outcomes.ts';
import { listLocks, listTop, locksIn } from '../v2/locks.ts';
import { versionOf } from '../version.ts';
import { readGateway } from './gateway.ts';
import { readQueues, readTtls } from './queues.ts';
import { Trial } from './trial.ts';

/** Measures one member through its gateway. Takes at most about twice the read timeout, unless a listing takes longer. */
export async function probe(url: string, access: Access): Promise<EndpointFacts> {
  const member = new MemberClient(url, access.settings);
  try {
    const info = await readInfo(member);
    // A silent member is not asked for long listings.
    if (!info.v3) return info;
    const own = info.v3.on ? await tryLocks(url, access) : undefined;
    const other = await readV2(member, access);
    return { ...info, ...own, ...other, locks: { ...own?.locks, ...other.locks } };
  } finally {
    await member.destroy();
  }
}

/** Reads what the member reports about itself. */
async function readInfo(member: MemberClient): Promise<EndpointFacts> {
  const endpoint = member.url;
  const deadline = Deadline.after(READ_TIMEOUT);
  const version = await member.info('/version', deadline).catch(asError);
  if (version instanceof Error) return { endpoint, unreachable: unreachable(version) };
  return { endpoint, version: versionOf(version), ...(await readGateway(member, version, deadline)) };
}

/**
 * Reads whether the member has the v2 API, and what is in the v2 store. Not by quorum, which would be a write of etcd v2: etcd 3.6
 * would panic at it.
 */
async function readV2(member: MemberClient, { settings: { lockPrefix } }: Access): Promise<Partial<EndpointFacts>> {
  const { v2, locks } = locksIn(await listLocks(member, lockPrefix), lockPrefix);
  return { v2, locks, ...(v2?.on && { v2Content: await listTop(member) }) };
}

async function tryLocks(url: string, access: Access): Promise<Partial<EndpointFacts>> {
  const tried = await tryOperations(url, access);
  return tried.read?.is === 'done' ? { ...tried, ...(await withClient(access, url, listQueues)) } : tried;
}

/**
 * Tries the operations that locks need, with the credentials and without. Auth is on if etcd v3 refuses the read without
 * credentials.
 */
function tryOperations(url: string, access: Access): Promise<Partial<EndpointFacts>> {
  const trial = new Trial(access.settings.lockPrefix);
  const deadline = Deadline.after(READ_TIMEOUT);
  return withClient(withoutCredentials(access), url, async (guest) => {
    const asGuest = Promise.all([trial.read(guest, deadline), trial.write(guest, deadline)]);
    const own = await withClient(access, url, async (client) => {
      const [reading, write] = await Promise.all([trial.measureReads(client, deadline), trial.write(client, deadline)]);
      return { ...reading, write };
    });
    const [read, write] = await asGuest;
    const auth = read.is === 'failed' ? undefined : read.is === 'refused';
    if (!auth || !hasCredentials(access)) return { ...own, auth };
    return { ...own, auth, guest: { read: read.is === 'done', write: write.is === 'done' } };
  });
}

/** Lists the locks, which may take longer than other requests. */
async function listQueues(client: V3Client): Promise<Partial<EndpointFacts>> {
  try {
    const { names, withoutLease, leases } = await readQueues(client, Deadline.after(LISTING_TIMEOUT));
    const ttls = await readTtls(client, leases, Deadline.after(READ_TIMEOUT)).catch(() => undefined);
    return { locks: { v3: names }, withoutLease, ttls };
  } catch {
    return {};
  }
}
