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

/**
 * Returns the basis for --ttl, else for the shortest remaining TTL, else for the default. The remaining TTL is an estimate:
 * etcd does not report the original TTL of an entry.
 */
export function basisOf({ ttl: given, endpoints, lockPrefix }: Facts): Basis {
  const left = endpoints.flatMap(({ ttls = [] }) => ttls);
  if (given !== undefined) return basis(given, 'set by --ttl');
  if (left.length === 0) return basis(DEFAULT_TTL, 'the default, because there are no entries; use --ttl to set yours');
  const from = `the shortest remaining TTL below ${lockPrefix}; use --ttl to set yours`;
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
