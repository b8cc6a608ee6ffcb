import { defaultMargin } from '../../lock/lease.ts';
import type { Facts } from './facts.ts';

/** What a LockManager takes, where nothing is known. */
const USUAL_TTL = 30;

/** The TTL that clocks and answers are held against. */
export interface Basis {
  readonly ttl: number;
  /** Seconds the members' clocks may differ by. */
  readonly margin: number;
  /** Milliseconds an attempt to renew gets. */
  readonly renewalMs: number;
  /** Where the TTL comes from, in words. */
  readonly from: string;
}

/** etcd tells what an entry has left, not the TTL it was given: that is the same or longer. */
export function basisOf({ ttl: given, endpoints, lockPrefix }: Facts): Basis {
  const left = endpoints.flatMap(({ ttls = [] }) => ttls);
  const shortest = left.length === 0 ? undefined : Math.max(1, Math.min(...left));
  const ttl = given ?? shortest ?? USUAL_TTL;
  const from =
    given !== undefined
      ? 'as --ttl says'
      : shortest !== undefined
        ? `the shortest that an entry below ${lockPrefix} has left; --ttl says what yours have`
        : 'the usual one, as there are no entries; --ttl says what yours have';
  return { ttl, margin: defaultMargin(ttl), renewalMs: (ttl * 1000) / 6, from };
}
