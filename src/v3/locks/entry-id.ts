import { createHash } from 'node:crypto';

/** Returns the name of the own key: one value has one key, so that an append may be repeated. */
export function idOf(value: string): string {
  const [uuid] = /[0-9a-f]{32}(?=(?:@[^@]*)?$)/.exec(value) ?? [];
  return uuid ?? createHash('sha256').update(value).digest('hex').slice(0, 32);
}
