import { createHash } from 'node:crypto';

/** Returns the last part of the own key. It depends only on the value, so that a repeated append creates no second key. */
export function idOf(value: string): string {
  // After the uuid there is no ":", and 32 digits in a label or a published text do not belong to one client only.
  const [, uuid] = /(?:^|:)([0-9a-f]{32})(?:@[^:]*)?$/.exec(value) ?? [];
  return uuid ?? createHash('sha256').update(value).digest('hex').slice(0, 32);
}
