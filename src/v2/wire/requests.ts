import type { WireRequest } from '../../http/message.ts';
import type { CreateOptions, DeleteOptions, GetOptions, SetOptions, WatchOptions } from '../keys-api.ts';
import * as check from '../requests.ts';
import { type Fields, params, parseBoolean, parseNumber, refusedRequest } from './form.ts';

/** A key that needs no escapes. */
const PLAIN = /^[\w./-]*$/;

const keyPath = (key: string): string =>
  `/keys${PLAIN.test(key) ? key : key.split('/').map(encodeURIComponent).join('/')}`;

export function encodeGet(key: string, options: GetOptions = {}): WireRequest {
  check.checkGet(key, options);
  const { recursive, sorted, quorum } = options;
  return { method: 'GET', path: keyPath(key), query: params({ recursive, sorted, quorum }) };
}

export function encodeWatch(key: string, options: WatchOptions = {}): WireRequest {
  check.checkWatch(key, options);
  const { after, recursive } = options;
  const waitIndex = after === undefined ? undefined : after + 1;
  return { method: 'GET', path: keyPath(key), query: params({ wait: true, waitIndex, recursive }) };
}

export function encodeSet(key: string, value: string | undefined, options: SetOptions = {}): WireRequest {
  check.checkSet(key, value, options);
  const { ttl, prevExist, prevValue, prevIndex, refresh, dir } = options;
  const exists = prevExist === undefined ? undefined : String(prevExist);
  const form = params({ value, ttl, prevValue, prevIndex, refresh, dir, prevExist: exists });
  return { method: 'PUT', path: keyPath(key), query: '', form };
}

export function encodeCreateInOrder(dir: string, value: string | undefined, options: CreateOptions = {}): WireRequest {
  check.checkCreateInOrder(dir, value, options);
  const form = params({ value, ttl: options.ttl ?? undefined, dir: options.dir });
  return { method: 'POST', path: keyPath(dir), query: '', form };
}

export function encodeDelete(key: string, options: DeleteOptions = {}): WireRequest {
  check.checkDelete(key, options);
  const { prevValue, prevIndex, dir, recursive } = options;
  return { method: 'DELETE', path: keyPath(key), query: params({ prevValue, prevIndex, dir, recursive }) };
}

/** Options as received over HTTP: a number beyond 2^53 is a bigint, so that it is exact. */
export type Exact<Options> = {
  readonly [Name in keyof Options]: Name extends 'ttl' | 'prevIndex' ? Options[Name] | bigint : Options[Name];
};

/** A decoded request: the call of `KeysApi` that it stands for. */
export type KeysRequest =
  | { readonly call: 'get'; readonly key: string; readonly options: GetOptions }
  | { readonly call: 'watch'; readonly key: string; readonly options: WatchOptions; readonly stream: boolean }
  | {
      readonly call: 'set';
      readonly key: string;
      readonly value: string | undefined;
      readonly options: Exact<SetOptions>;
    }
  | {
      readonly call: 'createInOrder';
      readonly key: string;
      readonly value: string | undefined;
      readonly options: Exact<CreateOptions>;
    }
  | { readonly call: 'delete'; readonly key: string; readonly options: Exact<DeleteOptions> };

export interface DecodedRequest {
  readonly request: KeysRequest;
  /** Whether the answer to a write should omit the node. */
  readonly noValueOnSuccess: boolean;
}

/**
 * Decodes a request as etcd does. Of conditions that contradict each other, etcd uses one and ignores the others.
 * @param method `HEAD` is decoded like `GET`
 * @throws {EtcdException} with etcd's text
 */
export function decodeKeysRequest(method: string, key: string, fields: Fields): DecodedRequest {
  const decoded = decodeFields(method, fields);
  return { request: requestOf(method, key, decoded), noValueOnSuccess: decoded.noValueOnSuccess };
}

type DecodedFields = ReturnType<typeof decodeFields>;

/** Checks the fields in etcd's order, so that a request with several mistakes gets the same error as from etcd. */
function decodeFields(method: string, fields: Fields) {
  const prevIndex = index(fields, 'prevIndex');
  const waitIndex = index(fields, 'waitIndex');
  const flags = {
    recursive: flag(fields, 'recursive'),
    sorted: flag(fields, 'sorted'),
    wait: flag(fields, 'wait'),
    dir: flag(fields, 'dir'),
    quorum: flag(fields, 'quorum'),
    stream: flag(fields, 'stream'),
  };
  if (flags.wait && method !== 'GET') throw refusedRequest(209, '"wait" can only be used with GET requests');
  const prevValue = fields.get('prevValue');
  if (prevValue === '') throw refusedRequest(201, '"prevValue" cannot be empty');
  const noValueOnSuccess = flag(fields, 'noValueOnSuccess');
  const ttl = fields.get('ttl') ? parseNumber(fields, 'ttl') : null;
  if (ttl === undefined) throw refusedRequest(202, 'invalid value for "ttl"');
  const prevExist = fields.has('prevExist') ? flag(fields, 'prevExist', 'prevExist') : undefined;
  const refresh = flag(fields, 'refresh', 'refresh');
  if (refresh && fields.get('value')) throw refusedRequest(211, 'A value was provided on a refresh');
  if (refresh && ttl === null) throw refusedRequest(212, 'No TTL value set');
  const value = fields.get('value') ?? '';
  return { ...flags, prevIndex, waitIndex, prevValue, noValueOnSuccess, ttl, prevExist, refresh, value };
}

function index(fields: Fields, name: string): number | bigint {
  const value = parseNumber(fields, name);
  if (value === undefined) throw refusedRequest(203, `invalid value for "${name}"`);
  return value;
}

function flag(fields: Fields, name: string, shown = `"${name}"`): boolean {
  const text = fields.get(name);
  const value = text === undefined ? false : parseBoolean(text);
  if (value === undefined) throw refusedRequest(209, `invalid value for ${shown}`);
  return value;
}

function requestOf(method: string, key: string, decoded: DecodedFields): KeysRequest {
  const { recursive, sorted, quorum, dir, ttl, prevIndex, prevValue, value } = decoded;
  switch (method) {
    case 'PUT':
      return setOf(key, decoded);
    case 'POST':
      return { call: 'createInOrder', key, value: dir ? undefined : value, options: { ttl, dir } };
    case 'DELETE':
      return { call: 'delete', key, options: { prevIndex: prevIndex || undefined, prevValue, dir, recursive } };
    default:
      // etcd ignores `wait` in a quorum read.
      if (!decoded.wait || quorum) return { call: 'get', key, options: { recursive, sorted, quorum } };
      return { call: 'watch', key, options: { after: afterOf(decoded), recursive }, stream: decoded.stream };
  }
}

/** A watch from an index beyond 2^53 never reports an event, because no store counts that far. */
const afterOf = ({ waitIndex }: DecodedFields): number | undefined =>
  waitIndex === 0 ? undefined : Math.min(Number(waitIndex) - 1, Number.MAX_SAFE_INTEGER - 1);

function setOf(key: string, decoded: DecodedFields): KeysRequest {
  const { ttl, prevExist, value } = decoded;
  const creates = prevExist === false;
  const conditions = creates ? {} : { prevIndex: decoded.prevIndex || undefined, prevValue: decoded.prevValue };
  const swaps = prevExist === true || check.isConditional(conditions);
  const refresh = decoded.refresh && !creates;
  // If the request changes a file, a value takes precedence over `dir`. If it creates a node, `dir` takes precedence.
  const dir = decoded.dir && !(swaps && value !== '');
  const options = { ttl, refresh, dir, ...conditions, ...(prevExist === undefined ? {} : { prevExist }) };
  return { call: 'set', key, value: dir || refresh ? undefined : value, options };
}
