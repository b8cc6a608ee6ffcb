import { etcdError } from '../../errors.ts';

/** Fields of a query or a form by name: of several with one name the first. */
export type Fields = ReadonlyMap<string, string>;

/** Where etcd's own number for a request it cannot read is known, its index is not. */
const NO_INDEX = 0;

export const refusedRequest = (errorCode: number, cause: string) => etcdError(errorCode, cause, NO_INDEX);

/**
 * Reads URL-encoded texts as Go does; what stands in an earlier text wins.
 * @throws {EtcdValueError} code 210, as etcd puts it
 */
export function parseFields(...texts: readonly string[]): Fields {
  const fields = new Map<string, string>();
  for (const text of texts) {
    if (text.includes(';')) throw refusedRequest(210, 'invalid semicolon separator in query');
    const bad = badEscape(text);
    if (bad !== undefined) throw refusedRequest(210, `invalid URL escape ${JSON.stringify(bad)}`);
    // The ampersand keeps a leading question mark from being taken away.
    for (const [name, value] of new URLSearchParams(`&${text}`)) if (!fields.has(name)) fields.set(name, value);
  }
  return fields;
}

/** The first `%` that begins no escape, with what follows it. */
export const badEscape = (text: string): string | undefined => /%(?![0-9a-f]{2})[^&=]{0,2}/i.exec(text)?.[0];

/** Numbers up to 2^64 - 1, plain digits: beyond 2^53 no store has counted, so they all become that. */
export function parseNumber(fields: Fields, name: string): number | undefined {
  const text = fields.get(name);
  if (text === undefined) return 0;
  if (!/^\d+$/.test(text) || BigInt(text) >= 2n ** 64n) return undefined;
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER);
}

const TRUTHS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const),
]);

/** A yes or no in any of the spellings Go takes; undefined for anything else. */
export const parseTruth = (text: string): boolean | undefined => TRUTHS.get(text);
