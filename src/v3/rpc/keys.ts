/** Where the entries of locks are. */
import { createHash } from 'node:crypto';

/** Returns the prefix of the keys of all locks. An empty `lockPrefix` is for lock names that other programs chose. */
export const keyPrefixOf = (lockPrefix: string): string => (lockPrefix === '' ? '' : `${lockPrefix}/`);

/** Returns the directory of a key, with the "/" at its end. */
export const directoryOf = (key: string): string => key.slice(0, key.lastIndexOf('/') + 1);

/** Whether a key is an entry of the queue at this path, and not one of a lock whose name begins with this lock's. */
export const isEntryOf = (path: string, key: string): boolean =>
  key.startsWith(`${path}/`) && !key.includes('/', path.length + 1);

/** Returns the last part of the own key. It depends only on the value, so that a repeated append creates no second key. */
export function idOf(value: string): string {
  // After the uuid there is no ":", and 32 digits in a label or a published text do not belong to one client only.
  const [, uuid] = /(?:^|:)([0-9a-f]{32})(?:@[^:]*)?$/.exec(value) ?? [];
  return uuid ?? createHash('sha256').update(value).digest('hex').slice(0, 32);
}
