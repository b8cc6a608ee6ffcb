/**
 * What a bridge to both stores adds to the value of a client's entry. By it, every such bridge knows that it has to enter the queue
 * on v3 for that client. For people it is a label, or the end of one: `<uuid>@via bridge`. No other client makes such a value: it
 * percent-encodes the space in a label.
 */
const MARK = '@via bridge';

/** Whether the entry's client uses a bridge to both stores. */
export const isBridged = (value: string): boolean => value.endsWith(MARK);

export const bridgedValue = (value: string): string => `${value}${MARK}`;

/** Returns the value as the client has given it. */
export const clientValue = (value: string): string => (isBridged(value) ? value.slice(0, -MARK.length) : value);
