import type { LockHolder } from '../../errors.ts';
import type { Entry } from '../store.ts';
import { type Claim, claimText, isAlone, namesOf, parseValue } from './entry-value.ts';
import { isOwn } from './own-entries.ts';

/** Maximum characters of each part of a holder's value in a message. Only other clients write longer ones. */
const MOST_SHOWN = 500;

/**
 * Returns the holder of a lock, as errors report it.
 * @param path directory of the queue
 */
export const holderOf = (path: string, { key, value, ttl }: Pick<Entry, 'key' | 'value' | 'ttl'>): LockHolder => ({
  ...parseValue(value),
  key,
  value,
  ttl,
  own: isOwn({ path, value }),
});

/** Returns who holds the lock and for how long, as text for a message. */
export function describeHolder(holder: LockHolder): string {
  const { mode, limit, key, ttl, own } = holder;
  const [name, ...others] = [...(own ? ['this process'] : []), ...namesOf(holder).map(shortened)];
  const left = ttl === undefined ? 'no expiry' : `${ttl} s left`;
  return `${name} (${[...others, ...describeClaim({ mode, limit }), key, left].join(', ')})`;
}

const describeClaim = (claim: Claim): string[] => (isAlone(claim) ? [] : [claimText(claim)]);

const shortened = (name: string): string => (name.length > MOST_SHOWN ? `${name.slice(0, MOST_SHOWN)}…` : name);
