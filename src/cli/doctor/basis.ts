import { defaultMargin } from '../../recipe/lease.ts';
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
  if (given !== undefined) return basis(given, 'as --ttl says');
  if (left.length === 0) return basis(USUAL_TTL, 'the usual one, as there are no entries; --ttl says what yours have');
  const from = `the shortest that an entry below ${lockPrefix} has left; --ttl says what yours have`;
  return basis(
    Math.max(
      1,
      left.reduce((least, ttl) => Math.min(least, ttl)),
    ),
    from,
  );
}

const basis = (ttl: number, from: string): Basis => ({
  ttl,
  margin: defaultMargin(ttl),
  renewalMs: (ttl * 1000) / 6,
  from,
});
