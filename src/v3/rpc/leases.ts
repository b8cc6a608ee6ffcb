import { createDebug } from '../../base/debug.ts';
import { keepTrying } from '../../base/pending-work.ts';
import type { Deadline } from '../../base/time.ts';
import { EtcdClusterIdChanged, EtcdConnectionFailed } from '../../errors.ts';
import { REMOVE_EVERY } from '../../recipe/entries/timing.ts';
import { FailedPrecondition, NotFound } from '../gateway/errors.ts';
import type { AskedMember, GatewayAnswer, GatewayCall, GatewayClient } from '../gateway/gateway.ts';
import { decodeText, type Header } from '../gateway/messages.ts';
import type { V3Entry } from './entry.ts';
import { byKey, readable, readEach } from './single-keys.ts';

const debug = createDebug('lease');

/** Result of a renewal. */
export interface LeaseRenewal extends Header {
  /** Seconds for which the store keeps the lease, counted from `sentAt`. */
  readonly granted: number;
  /** When the keep-alive was sent: milliseconds on the monotonic clock. */
  readonly sentAt: number;
  readonly member: string;
  /** The requested entries that still exist, by key. */
  readonly entries: ReadonlyMap<string, V3Entry>;
}

/** Result of creating a lease. */
export interface Granted extends Pick<LeaseRenewal, 'clusterId' | 'granted' | 'sentAt'> {
  /** Whether the request was sent more than once: a member may still carry out another copy. */
  readonly isRepeated: boolean;
}

/** Requests for leases. */
export class LeaseRequests {
  readonly #gateway: GatewayClient;

  constructor(gateway: GatewayClient) {
    this.#gateway = gateway;
  }

  /** Creates a lease. Resolves to the TTL that the store has set, which may be longer. May be sent more than once, also by a proxy. */
  async grant(id: string, ttl: number, options: GatewayCall): Promise<Granted> {
    let sent = 0;
    const granted = await this.#gateway.call('hedged', options, async (member) => {
      sent += 1;
      try {
        const answer = await member.ask('/lease/grant', { ID: id, TTL: String(ttl) });
        if (String(answer.fields.integer('ID')) !== id) throw answer.unusable(`is not about lease ${id}`);
        return grantedIn(answer, answer.fields.positive('TTL'));
      } catch (error) {
        // An earlier copy of the request has created the lease: one of this call, or one that a proxy has repeated. A lease of others has keys.
        if (!(error instanceof FailedPrecondition) || (sent === 1 && (await readKeys(member, id)).length > 0))
          throw error;
        const alive = await member.ask('/lease/keepalive', { ID: id });
        const ttl = alive.fields.integer('TTL');
        if (ttl <= 0n) throw new NotFound(`lease ${id} does not exist`);
        return grantedIn(alive, ttl);
      }
    });
    return { ...granted, isRepeated: sent > 1 };
  }

  /**
   * Keeps a lease alive, then reads its entries on the same member: a leader that was stopped may confirm a lease that is gone.
   * @param keys the entries to read. If there are none, the answer to a later write must confirm the lease, by the same raft term
   * @throws {NotFound} if the lease is gone
   */
  renew(lease: string, keys: readonly string[], options: GatewayCall): Promise<LeaseRenewal> {
    return this.#gateway.call('hedged', options, async (member) => {
      const alive = await member.ask('/lease/keepalive', { ID: lease });
      const granted = Number(alive.fields.integer('TTL'));
      if (granted <= 0) throw new NotFound(`lease ${lease} does not exist`);
      const entries = new Map<string, V3Entry>();
      let last = alive;
      for (const some of readable(keys)) {
        const answer = await member.ask('/kv/txn', readEach(some));
        checkSameCluster(alive, answer);
        if (answer.header.raftTerm !== alive.header.raftTerm)
          throw new EtcdConnectionFailed('the leader changed during the renewal', { outcomeUnknown: true });
        last = answer;
        for (const [key, entry] of byKey(answer, some.length)) entries.set(key, entry);
      }
      return { ...last.header, granted, sentAt: alive.sentAt, member: member.url, entries };
    });
  }

  /** Revokes a lease, which removes its entries. Also resolves if the lease is gone. */
  revoke(id: string, options: GatewayCall): Promise<void> {
    return this.#gateway.call('hedged', options, async (member) => {
      try {
        await member.ask('/kv/lease/revoke', { ID: id });
      } catch (error) {
        if (!(error instanceof NotFound)) throw error;
      }
    });
  }

  /** Revokes a lease. Retries until that succeeds, the deadline has passed, or the client is closed. Never rejects. */
  async revokeUntil(id: string, until: Deadline): Promise<void> {
    const { pending, destroyed } = this.#gateway;
    let isDone = false;
    const attempt = async (): Promise<void> => {
      try {
        await this.revoke(id, { background: true });
        isDone = true;
      } catch (error) {
        debug('lease %s not revoked yet: %s', id, error);
      }
    };
    await attempt();
    const more = (): boolean => !isDone && !until.passed;
    await keepTrying(more, attempt, { most: REMOVE_EVERY, closing: pending.closing, signal: destroyed });
  }

  /** Reads the TTL that a lease was created with, in seconds; undefined if the lease is gone. */
  grantedTo(lease: string, options: GatewayCall): Promise<number | undefined> {
    return this.#gateway.call('hedged', { lane: 'read', ...options }, async (member) => {
      const { fields } = await member.ask('/kv/lease/timetolive', { ID: lease });
      return fields.integer('TTL') < 0n ? undefined : Number(fields.integer('grantedTTL'));
    });
  }

  /** Reads the keys that are attached to a lease; none if it is gone. */
  keysOf(lease: string, options: GatewayCall): Promise<readonly string[]> {
    return this.#gateway.call('hedged', { lane: 'read', ...options }, (member) => readKeys(member, lease));
  }

  /** Resolves to the entries with their remaining TTLs. Sends one request for each of their leases. */
  async withTtls(entries: readonly V3Entry[], options: GatewayCall): Promise<readonly V3Entry[]> {
    const ttls = new Map<string | undefined, number | undefined>([[undefined, undefined]]);
    // A call for each lease, because a call that takes a second counts as not answered.
    const read = (lease: string | undefined) =>
      this.#gateway.call('hedged', { lane: 'read', ...options }, (member) => timeToLive(member, lease));
    for (const { lease } of entries) if (!ttls.has(lease)) ttls.set(lease, await read(lease));
    return entries.map((entry) => ({ ...entry, ttl: ttls.get(entry.lease) }));
  }
}

/**
 * Returns an id for a new lease, made from 8 bytes. It is positive, because members may disagree about a negative one. Unlike in the
 * ids that a bridge chooses, its bit 62 is set.
 */
export const leaseIdOf = (bytes: Buffer): string => String((bytes.readBigUInt64BE() >> 1n) | (1n << 62n));

/** Returns the seconds that a lease has left, at least 0; undefined without a lease. */
export async function timeToLive(member: AskedMember, lease: string | undefined): Promise<number | undefined> {
  if (lease === undefined) return undefined;
  const { fields } = await member.ask('/kv/lease/timetolive', { ID: lease });
  return Math.max(0, Number(fields.integer('TTL')));
}

async function readKeys(member: AskedMember, lease: string): Promise<readonly string[]> {
  const { fields } = await member.ask('/kv/lease/timetolive', { ID: lease, keys: true });
  return fields.texts('keys').map(decodeText);
}

const grantedIn = ({ header: { clusterId }, sentAt }: GatewayAnswer, ttl: bigint): Omit<Granted, 'isRepeated'> => ({
  clusterId,
  granted: Number(ttl),
  sentAt,
});

/** @throws {EtcdClusterIdChanged} if two answers that belong together came from different clusters */
function checkSameCluster(
  { header: { clusterId: first } }: GatewayAnswer,
  { header: { clusterId: second } }: GatewayAnswer,
): void {
  if (first !== second)
    throw new EtcdClusterIdChanged(`cluster ${first} renewed a lease, but cluster ${second} answered for its entries`, {
      outcomeUnknown: true,
    });
}
