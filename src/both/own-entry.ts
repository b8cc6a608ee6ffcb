import type { OwnEntry } from '../recipe/store.ts';

/**
 * Returns the own entry in both queues as one: named as on v2, and kept for as long as the one of the two that expires first.
 * @param v3 undefined as long as there is none
 */
export function combined(v2: OwnEntry, v3: OwnEntry | undefined): OwnEntry {
  if (!v3 || expiryOf(v2) <= expiryOf(v3)) return v2;
  const { granted, sentAt, member } = v3;
  return { ...v2, granted, sentAt, member };
}

/** When the entry expires at the earliest: milliseconds on the monotonic clock. */
const expiryOf = ({ granted, sentAt }: OwnEntry): number =>
  granted === null ? Number.POSITIVE_INFINITY : sentAt + granted * 1000;
