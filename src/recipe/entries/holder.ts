import { addKnown, type LockHolder } from '../../errors.ts';
import type { Entry } from '../store.ts';
import { type Claim, claimText, isAlone, namesOf, parseValue } from './entry-value.ts';
import { isOwn } from './own-entries.ts';

/** Maximum characters of each part of a holder's value in a message. Only other clients write longer ones. */
const MOST_SHOWN = 500;

/**
 * Returns the holder of a lock, as errors report it. A logger shows only those of its fields that are known.
 * @param path directory of the queue
 */
export const holderOf = (path: string, { key, value, ttl }: Pick<Entry, 'key' | 'value' | 'ttl'>): LockHolder =>
  addKnown({}, { ...parseValue(value), key, value, ttl, own: isOwn({ path, value }) });

/** Returns who holds the lock, and when its entry expires unless renewed, as text for a message. Its TTL must have been read. */
export const describeHolder = (holder: LockHolder): string =>
  describeOwner(holder, holder.ttl === undefined ? 'never expires' : `${holder.ttl} s left`);

/** Returns the owner of an entry, and what else is known about the entry, as text for a message. */
export function describeOwner(holder: LockHolder, ...more: readonly string[]): string {
  const { mode, limit, key, own } = holder;
  const [name, ...others] = [...(own ? ['this process'] : []), ...namesOf(holder).map(shortened)];
  return `${name} (${[...others, ...describeClaim({ mode, limit }), key, ...more].join(', ')})`;
}

const describeClaim = (claim: Claim): string[] => (isAlone(claim) ? [] : [claimText(claim)]);

const shortened = (name: string): string => (name.length > MOST_SHOWN ? `${name.slice(0, MOST_SHOWN)}…` : name);
