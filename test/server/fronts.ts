import type { OpenServer } from '../support/open-server.ts';
import * as raw from '../support/raw-connection.ts';
import * as requests from './v3/requests.ts';

/** One of the two APIs behind a front, as a client without a library uses it. Hostile clients do the same to both. */
export interface FrontApi {
  readonly name: 'v2' | 'v3';
  /** The beginning of a write of `/k`: its request line, and its headers without those about the length of its body. */
  readonly head: string;
  /** The body of a write of 1 to `/k`. */
  readonly body: string;
  /** Statuses of a write of a new key, and of a read of a missing one. */
  readonly created: number;
  readonly missing: number;
  /** The most bytes that a body may have. */
  readonly longestBody: number;
  /** Returns a body of this length that writes to `/k`, or would if it were allowed. */
  bodyOf(length: number): string;
  /** The body of an answer with 503. */
  readonly overloaded: RegExp;
  /** Whether an answer says that a body is too long. */
  isTooLong(answer: raw.RawAnswer): boolean;
  put(key: string, value: string, headers?: string): string;
  /** A write whose answer contains the value before. */
  replace(key: string, value: string): string;
  get(key: string, headers?: string): string;
  /** Reads all keys under a key. */
  list(key: string): string;
  /** A request that waits for a change of a key, and gets its headers at once. */
  wait(key: string, headers?: string): string;
  /** A request for each change of a key, from its first one on. */
  history(key: string): string;
  /** A request for each change of a key from now on. */
  stream(key: string): string;
  /** Returns the value in an answer to `get`. */
  valueIn(answer: raw.RawAnswer | undefined): string | undefined;
  /** Whether text that a stream has received contains an event with this value. */
  hasEvent(text: string, value: string): boolean;
  /** Writes a key in the store itself, whatever its length. */
  set(etcd: OpenServer, key: string, value: string): void;
  /** Returns a value that is in the store. */
  valueOf(etcd: OpenServer, key: string): string | undefined;
  /** Returns the number of writes that the store has carried out. */
  writes(etcd: OpenServer): number;
}

const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';
const MIB = 2 ** 20;

/** etcd has set these keys for itself. */
const FIRST_INDEX = 3;

export const V2: FrontApi = {
  name: 'v2',
  head: `PUT /v2/keys/k HTTP/1.1\r\nHost: localhost\r\n${FORM}`,
  body: 'value=1',
  created: 201,
  missing: 404,
  longestBody: MIB,
  overloaded: /^503 Service Unavailable: limit of memory .* reached: retry later/,
  bodyOf: (length) => 'value='.padEnd(length, 'x'),
  isTooLong: ({ status, body }) =>
    status === 400 &&
    body === '{"errorCode":210,"message":"Invalid POST form","cause":"http: POST too large","index":0}\n',
  put: (key, value, headers = '') => raw.request('PUT', `/v2/keys${key}`, { form: `value=${value}`, headers }),
  replace: raw.put,
  get: (key, headers = '') => raw.request('GET', `/v2/keys${key}`, { headers }),
  list: raw.get,
  wait: (key, headers = '') => raw.request('GET', `/v2/keys${key}?wait=true`, { headers }),
  history: (key) => raw.get(`${key}?wait=true&stream=true&waitIndex=${FIRST_INDEX + 1}`),
  stream: (key) => raw.get(`${key}?wait=true&stream=true`),
  valueIn: (answer) => JSON.parse(answer?.body ?? '').node?.value,
  hasEvent: (text, value) => text.includes(`"value":"${value}"`),
  set: ({ store }, key, value) => void store.set(key, value, {}),
  valueOf: ({ store }, key) => store.get(key, {}).value,
  writes: ({ store }) => store.index - FIRST_INDEX,
};

export const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64');

/** A request of v3 with a body of any kind. */
export const post = (path: string, body: string | object, headers = ''): string => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return `POST /v3${path} HTTP/1.1\r\nHost: localhost\r\n${headers}Content-Length: ${text.length}\r\n\r\n${text}`;
};

/** The keys under a key. */
const under = (key: string): object => ({ key: base64(`${key}/`), range_end: base64(`${key}0`) });

const watch = (request: object, headers = ''): string => post('/watch', { create_request: request }, headers);

const PUT_1 = JSON.stringify({ key: base64('/k'), value: base64('1') });

export const V3: FrontApi = {
  name: 'v3',
  head: 'POST /v3/kv/put HTTP/1.1\r\nHost: localhost\r\n',
  body: PUT_1,
  created: 200,
  missing: 200,
  longestBody: 2.5 * MIB,
  overloaded: /^\{"error":"limit of memory .* reached: retry later.*","code":14\}$/,
  bodyOf: (length) => PUT_1.padEnd(length, ' '),
  isTooLong: ({ status, body }) =>
    status === 429 &&
    body ===
      '{"error":"grpc: received message larger than max","message":"grpc: received message larger than max","code":8}',
  put: (key, value, headers = '') => post('/kv/put', { key: base64(key), value: base64(value) }, headers),
  replace: (key, value) => post('/kv/put', { key: base64(key), value: base64(value), prev_kv: true }),
  get: (key, headers = '') => post('/kv/range', { key: base64(key) }, headers),
  list: (key) => post('/kv/range', under(key)),
  wait: (key, headers = '') => watch({ key: base64(key) }, headers),
  history: (key) => watch({ key: base64(key), start_revision: '1' }),
  stream: (key) => watch({ key: base64(key) }),
  valueIn: (answer) => {
    const [found] = JSON.parse(answer?.body ?? '').kvs ?? [];
    return found && Buffer.from(found.value, 'base64').toString('latin1');
  },
  hasEvent: (text, value) => text.includes(`"value":"${base64(value)}"`),
  set: ({ v3 }, key, value) => void v3.put(requests.put({ key, value })),
  valueOf: ({ v3 }, key) => v3.range(requests.range({ key })).kvs[0]?.value,
  writes: ({ v3 }) => Number(v3.revision) - 1,
};

/** For `describe.each`. */
export const FRONTS: readonly (readonly [name: string, api: FrontApi])[] = [V2, V3].map((api) => [api.name, api]);
