import { type Bytes, compare, FROM_KEY, isIn, type KeyRange } from '../bytes.ts';
import type { Permission } from '../messages.ts';

export const PERMISSION_TYPES = ['READ', 'WRITE', 'READWRITE'] as const;

export type Access = 'READ' | 'WRITE';

/** Greater than each key. */
const END_OF_KEYS = '\uffff';

/** Returns the first key behind a range. */
const endOf = ({ key, range_end: end }: KeyRange): Bytes =>
  end === '' ? `${key}\0` : end === FROM_KEY ? END_OF_KEYS : end;

/** Returns whether the permissions together allow an access to all keys of a range. */
export function allows(permissions: readonly Permission[], access: Access, range: KeyRange): boolean {
  const given = permissions.filter(({ permType }) => [access, 'READWRITE'].includes(PERMISSION_TYPES[permType] ?? ''));
  if (range.range_end === '') return given.some((permission) => isIn(permission, range.key));
  const [wanted, ranges] = [endOf(range), given.toSorted((one, other) => compare(one.key, other.key))];
  let reached = range.key;
  for (const permission of ranges) {
    if (permission.key > reached) break;
    if (endOf(permission) > reached) reached = endOf(permission);
  }
  // One of them contains the first key, even if the range is empty.
  return reached > range.key && reached >= wanted;
}
