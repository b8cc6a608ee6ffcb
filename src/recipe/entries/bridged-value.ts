/**
 * What a bridge to both stores adds to the value of a client's entry. It marks the entries for which every such bridge also enters
 * the queue on v3. People read it as a label, or as the end of one: `<uuid>@via bridge`. No other client writes such a value: in a
 * label, the space is percent-encoded.
 */
const MARK = '@via bridge';

/** Whether the entry's client uses a bridge to both stores. */
export const isBridged = (value: string): boolean => value.endsWith(MARK);

export const bridgedValue = (value: string): string => `${value}${MARK}`;

/** Returns the value as the client has given it. */
export const clientValue = (value: string): string => (isBridged(value) ? value.slice(0, -MARK.length) : value);
