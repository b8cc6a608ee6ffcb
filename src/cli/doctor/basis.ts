import { defaultMargin } from '../../recipe/lease.ts';
import type { Facts } from './facts.ts';

/** Default TTL of a LockManager, in seconds. */
const DEFAULT_TTL = 30;

/** The TTL by which clock differences and response times are assessed, and the limits that follow from it. */
export interface Basis {
  readonly ttl: number;
  /** Seconds by which the members' clocks may differ. */
  readonly margin: number;
  /** Time limit of a renewal attempt, in milliseconds. */
  readonly renewalMs: number;
  /** Where the TTL comes from, for the report. */
  readonly from: string;
}

/** etcd v2 does not report the original TTL of an entry, so the remaining TTL is an estimate. */
const SHORTEST = { v2: 'the shortest remaining TTL', v3: 'the shortest TTL of a lease' } as const;

/** Returns the basis for --ttl, else for the shortest known TTL, else for the default. */
export function basisOf({ api = 'v2', ttl: given, endpoints, lockPrefix }: Facts): Basis {
  const left = endpoints.flatMap(({ ttls = [] }) => ttls);
  if (given !== undefined) return basis(given, 'set by --ttl');
  if (left.length === 0) return basis(DEFAULT_TTL, 'the default, because there are no entries; use --ttl to set yours');
  const from = `${SHORTEST[api]}${lockPrefix === '' ? '' : ` below ${lockPrefix}`}; use --ttl to set yours`;
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
