import { EtcdV3Refusal, UNKNOWN } from '../errors.ts';
import type { Decode, Json } from './decode.ts';
import type { Kind } from './fields.ts';
import { JsonParser } from './json/parse.ts';

const NO_FIELDS: Json = { value: { kind: 'object', at: 0, members: [] }, text: '' };

/** Returns the request in a body; one without fields for an empty body. Bytes behind it are ignored. @throws {EtcdV3Refusal} */
export function requestIn(text: string): Json {
  const value = new JsonParser(text).next();
  return value ? { value, text } : NO_FIELDS;
}

/** Maximum number of requests that are read from one body. One may have a million that ask for nothing. */
const MOST_REQUESTS = 100_000;

/** What a client sends on a stream. */
export interface Sent<T> {
  /** Those before the first one that cannot be read. Each is decoded when its turn comes: together they may need much memory. */
  readonly requests: Iterable<T>;
  readonly isEmpty: boolean;
  /** The error of the first request if that one cannot be read. */
  readonly error: EtcdV3Refusal | undefined;
}

/** Returns the requests that a client sends on a stream. */
export function requestsIn<T>(kind: Kind<T>, text: string, decode: Decode): Sent<T> {
  const requests = decoded(kind, text, decode);
  const { value: first } = requests.next();
  if (first instanceof EtcdV3Refusal) return { requests: [], isEmpty: true, error: first };
  return { requests: first ? withFirst(first, requests) : [], isEmpty: first === undefined, error: undefined };
}

/** Yields the requests. Returns the error of one that cannot be read. */
function* decoded<T>(kind: Kind<T>, text: string, decode: Decode): Generator<T, EtcdV3Refusal | undefined> {
  const parser = new JsonParser(text);
  try {
    let count = 0;
    for (let value = parser.next(); value && count < MOST_REQUESTS; value = parser.next()) {
      count += 1;
      yield decode(kind, { value, text });
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof EtcdV3Refusal)) throw error;
    return new EtcdV3Refusal(UNKNOWN, error.message);
  }
}

function* withFirst<T>(first: T, others: Iterable<T>): Iterable<T> {
  yield first;
  yield* others;
}
