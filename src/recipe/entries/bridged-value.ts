import type { Entry } from './entry.ts';

/**
 * What a bridge to both stores adds to the value of a client's entry. It marks the entries for which every such bridge also enters
 * the queue on v3. People read it as a label, or as the end of one: `<uuid>@via bridge`. No other client writes such a value: in a
 * label, the space is percent-encoded.
 */
const MARK = '@via bridge';

/** Whether the entry's client uses a bridge to both stores. */
export const isBridged = (value: string): boolean => value.endsWith(MARK);

export const bridgedValue = (value: string): string => `${value}${MARK}`;

/**
 * Whether an entry on v3 is a twin: made by a bridge to both stores, for an entry on v2 with the same key. If a read of v2 that begins
 * after the twin was seen does not show the entry on v2, that entry is gone for good.
 */
export const isTwin = ({ key, value }: Pick<Entry, 'key' | 'value'>): boolean =>
  /\/\d{20}$/.test(key) && isBridged(value);

/** Returns the value as the client has given it. */
export const clientValue = (value: string): string => (isBridged(value) ? value.slice(0, -MARK.length) : value);
