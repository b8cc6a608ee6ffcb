/** Returns a server-sent event. JSON has no line breaks. */
export const frame = (event: string, json: string): Buffer => Buffer.from(`event: ${event}\ndata: ${json}\n\n`);

/** Returns the JSON of an event, which is not copied. */
export const jsonIn = (event: Buffer): Buffer => event.subarray(event.indexOf('\ndata: ') + 7, -2);
