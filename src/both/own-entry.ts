import type { OwnEntry } from '../recipe/store.ts';

/**
 * Combines the own entries of the two queues into one. It is the entry on v2, with the expiry of whichever entry expires first.
 * @param v3 the own entry on v3; undefined if there is none
 */
export function combined(v2: OwnEntry, v3: OwnEntry | undefined): OwnEntry {
  if (!v3 || expiryOf(v2) <= expiryOf(v3)) return v2;
  const { granted, sentAt, member } = v3;
  return { ...v2, granted, sentAt, member };
}

/** When the entry expires at the earliest: milliseconds on the monotonic clock. */
const expiryOf = ({ granted, sentAt }: OwnEntry): number =>
  granted === null ? Number.POSITIVE_INFINITY : sentAt + granted * 1000;
