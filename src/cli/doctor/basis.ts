import type { StoreApi } from '../../client.ts';
import { defaultMargin } from '../../recipe/lease.ts';
import { hedgeRenewalAfter as v2HedgeAfter } from '../../v2/locks/timing.ts';
import { hedgeRenewalAfter as v3HedgeAfter } from '../../v3/locks/timing.ts';
import type { Facts } from './facts.ts';

/** Default TTL of a LockManager, in seconds. */
const DEFAULT_TTL = 30;

/** The TTL by which clock differences and response times are assessed, and the limits that follow from it. */
export interface Basis {
  readonly ttl: number;
  /** Seconds by which the members' clocks may differ. */
  readonly margin: number;
  /** Milliseconds after which a renewal asks another member. A read that takes longer is slow. */
  readonly slowMs: number;
  /** Where the TTL comes from, for the report. */
  readonly from: string;
}

const HEDGE_AFTER = { v2: v2HedgeAfter, v3: v3HedgeAfter } as const;

/** etcd v2 does not report the original TTL of an entry, so the remaining TTL is an estimate. */
const SHORTEST = { v2: 'the shortest remaining TTL', v3: 'the shortest TTL of a lease' } as const;

/** Returns the basis for --ttl, else for the shortest known TTL, else for the default. */
export function basisOf({ api = 'v2', ttl: given, endpoints, lockPrefix }: Facts): Basis {
  const left = endpoints.flatMap(({ ttls = [] }) => ttls);
  if (given !== undefined) return basis(api, given, 'set by --ttl');
  if (left.length === 0) return basis(api, DEFAULT_TTL, 'the default, because no TTL is known; use --ttl to set yours');
  const shortest = left.reduce((least, ttl) => Math.min(least, ttl));
  const from = `${SHORTEST[api]}${lockPrefix === '' ? '' : ` below ${lockPrefix}`}; use --ttl to set yours`;
  return basis(api, Math.max(1, shortest), from);
}

const basis = (api: StoreApi, ttl: number, from: string): Basis => ({
  ttl,
  margin: defaultMargin(ttl),
  slowMs: HEDGE_AFTER[api](ttl) * 1000,
  from,
});
