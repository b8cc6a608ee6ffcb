/** The v2 keys protocol as values: what a request looks like, and what an answer means. Pure: no I/O. */
import {
  EtcdConnectionFailed,
  type EtcdException,
  EtcdInsufficientPermissions,
  EtcdUnusableAnswer,
  fromErrorCode,
} from '../errors.ts';
import type {
  Change,
  CreateOptions,
  DeleteOptions,
  GetOptions,
  KeyEvent,
  Node,
  SetOptions,
  Snapshot,
  WatchOptions,
} from '../keys/api.ts';
import { checkInteger, show } from '../keys/checks.ts';
import { checkKey } from '../keys/paths.ts';

export interface WireRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Below the version prefix, percent-encoded, such as `/keys/_locks/x`. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly form?: URLSearchParams;
}

/** An answer as it came, before anything is made of it. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
  /** When its request was sent: milliseconds on the monotonic clock. */
  readonly sentAt: number;
}

type Field = string | number | boolean | null | undefined;

function params(fields: Record<string, Field>): URLSearchParams {
  const result = new URLSearchParams();
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined && value !== false) result.set(name, String(value ?? ''));
  return result;
}

const keyPath = (key: string): string => {
  if (key !== '/') checkKey('key', key);
  return `/keys${key.split('/').map(encodeURIComponent).join('/')}`;
};

function checkConditions({ prevValue, prevIndex }: DeleteOptions): void {
  if (prevValue === '') throw new RangeError('prevValue must not be empty: etcd refuses that, use prevIndex');
  if (prevIndex !== undefined) checkInteger('prevIndex', prevIndex, 0);
}

/** A question about the cluster itself. `/version` alone is served beside the version prefix, not below it. */
export function encodeInfo(path: '/version' | '/machines' | '/members'): WireRequest {
  return { method: 'GET', path, query: params({}) };
}

export function encodeGet(key: string, { recursive, sorted, quorum }: GetOptions = {}): WireRequest {
  return { method: 'GET', path: keyPath(key), query: params({ recursive, sorted, quorum }) };
}

export function encodeWatch(key: string, { after, recursive }: WatchOptions): WireRequest {
  checkInteger('after', after, 0);
  return { method: 'GET', path: keyPath(key), query: params({ wait: true, waitIndex: after + 1, recursive }) };
}

export function encodeSet(key: string, value: string | undefined, options: SetOptions = {}): WireRequest {
  const { ttl, prevExist, prevValue, prevIndex, refresh, dir } = options;
  if (ttl !== undefined && ttl !== null) checkInteger('ttl', ttl, 0);
  checkConditions(options);
  if (refresh && (value !== undefined || typeof ttl !== 'number'))
    throw new RangeError(`refresh goes with a ttl and without a value, got ttl ${show(ttl)} and value ${show(value)}`);
  if (dir && value !== undefined) throw new RangeError(`a directory has no value, got ${show(value)}`);
  const form = params({ value, ttl, prevValue, prevIndex, refresh, dir });
  if (prevExist !== undefined) form.set('prevExist', String(prevExist));
  return { method: 'PUT', path: keyPath(key), query: params({}), form };
}

export function encodeCreateInOrder(dir: string, value: string, { ttl }: CreateOptions = {}): WireRequest {
  if (ttl !== undefined && ttl !== null) checkInteger('ttl', ttl, 0);
  return { method: 'POST', path: keyPath(dir), query: params({}), form: params({ value, ttl: ttl ?? undefined }) };
}

export function encodeDelete(key: string, options: DeleteOptions = {}): WireRequest {
  checkConditions(options);
  const { prevValue, prevIndex, dir, recursive } = options;
  return { method: 'DELETE', path: keyPath(key), query: params({ prevValue, prevIndex, dir, recursive }) };
}

export function decodeSnapshot(answer: WireAnswer): Snapshot {
  const body = decodeBody(answer);
  const index = headerIndex(answer);
  // Without it a waiter could only guess where to watch from, and miss the event it waits for.
  if (index === undefined) throw unusable(answer, 'has no X-Etcd-Index (does a proxy drop it?)');
  return { ...common(answer), index, node: decodeTopNode(body['node'], answer) };
}

export function decodeChange(answer: WireAnswer): Change {
  const body = decodeBody(answer);
  const prevNode = body['prevNode'];
  return {
    ...common(answer),
    action: String(body['action']),
    node: decodeNode(body['node'], answer),
    ...(prevNode === undefined ? {} : { prevNode: decodeNode(prevNode, answer) }),
  };
}

/** An empty body is how a server ends a wait it gives up: undefined. */
export function decodeEvent(answer: WireAnswer): KeyEvent | undefined {
  if (answer.status === 200 && answer.body.trim() === '') return undefined;
  const change = decodeChange(answer);
  return { ...change, index: change.node.modifiedIndex };
}

/** The version a server tells of itself; `cluster` is the least of its members', undefined before that is decided. */
export interface Version {
  readonly server: string;
  readonly cluster: string | undefined;
}

export function decodeVersion(answer: WireAnswer): Version {
  if (answer.status !== 200) throw decodeError(answer);
  const text = /^etcd (\d+(?:\.\d+)+\S*)$/.exec(answer.body.trim());
  if (text?.[1]) return { server: text[1], cluster: undefined };
  const { etcdserver, etcdcluster } = parseObject(answer) ?? {};
  if (typeof etcdserver !== 'string') throw unusable(answer, 'does not tell a version');
  return {
    server: etcdserver,
    cluster: typeof etcdcluster === 'string' && /^\d/.test(etcdcluster) ? etcdcluster : undefined,
  };
}

/** Whether `refresh` keeps the value there. Before 2.3 it is ignored, and the request wipes the value. */
export function knowsRefresh({ cluster }: Version): boolean {
  const [major = 0, minor = 0] = (cluster ?? '0').split('.').map(Number);
  return major > 2 || (major === 2 && minor >= 3);
}

export interface Member {
  readonly id: string;
  readonly name: string;
  readonly peerURLs: readonly string[];
  readonly clientURLs: readonly string[];
}

export function decodeMembers(answer: WireAnswer): Member[] {
  const members = decodeBody(answer)['members'];
  if (!Array.isArray(members)) throw unusable(answer, 'lists no members');
  return members.map((member: unknown) => {
    if (!isRecord(member)) throw unusable(answer, 'lists no members');
    const { id, name, peerURLs, clientURLs } = member;
    return { id: String(id), name: String(name), peerURLs: texts(peerURLs), clientURLs: texts(clientURLs) };
  });
}

const texts = (list: unknown): string[] => (Array.isArray(list) ? list.map(String) : []);

export function decodeMachines(answer: WireAnswer): string[] {
  if (answer.status !== 200) throw decodeError(answer);
  const machines = answer.body.split(',').map((url) => url.trim());
  if (!machines.every((url) => /^https?:\/\//.test(url))) throw unusable(answer, 'lists no machines');
  return machines;
}

export function clusterIdOf(answer: WireAnswer): string | undefined {
  return header(answer, 'x-etcd-cluster-id');
}

function common(answer: WireAnswer) {
  return { clusterId: clusterIdOf(answer), sentAt: answer.sentAt };
}

function header({ headers }: WireAnswer, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value[0] : value;
}

function headerIndex(answer: WireAnswer): number | undefined {
  const text = header(answer, 'x-etcd-index');
  return text === undefined ? undefined : decodeIndex(text, 'X-Etcd-Index', answer);
}

/** Beyond 2^53 a number is no longer exact, and a watch from a rounded index could miss its event. */
function decodeIndex(value: unknown, what: string, answer: WireAnswer): number {
  const index = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof index === 'number' && Number.isSafeInteger(index) && index >= 0) return index;
  throw unusable(answer, `has ${what} ${show(value)}, which is no index below 2^53`);
}

/** etcd's answer for the root has no key and no indexes: no write ever made it. */
function decodeTopNode(raw: unknown, answer: WireAnswer): Node {
  const isRoot = isRecord(raw) && raw['key'] === undefined && raw['dir'] === true;
  return decodeNode(isRoot ? { key: '/', createdIndex: 0, modifiedIndex: 0, ...raw } : raw, answer);
}

function decodeNode(raw: unknown, answer: WireAnswer): Node {
  if (!isRecord(raw) || typeof raw['key'] !== 'string') throw unusable(answer, 'has no node');
  const { key, value, dir, ttl, expiration, nodes, createdIndex, modifiedIndex } = raw;
  return {
    key: key as string,
    dir: dir === true,
    ...(typeof value === 'string' ? { value } : {}),
    ...(typeof ttl === 'number' ? { ttl } : {}),
    ...(typeof expiration === 'string' ? { expiration } : {}),
    createdIndex: decodeIndex(createdIndex, 'createdIndex', answer),
    modifiedIndex: decodeIndex(modifiedIndex, 'modifiedIndex', answer),
    nodes: Array.isArray(nodes) ? nodes.map((child) => decodeNode(child, answer)) : [],
  };
}

function decodeBody(answer: WireAnswer): Record<string, unknown> {
  const body = parseObject(answer);
  if (answer.status < 200 || answer.status > 299 || body?.['errorCode'] !== undefined) throw decodeError(answer, body);
  if (!body) throw unusable(answer, 'is not JSON');
  return body;
}

function parseObject({ body }: WireAnswer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Meaning of an answer that is no success. */
function decodeError(answer: WireAnswer, body = parseObject(answer)): EtcdException {
  const { status } = answer;
  const errorCode = body?.['errorCode'];
  if (body && typeof errorCode === 'number') {
    const { message, cause } = body;
    const index = typeof body['index'] === 'number' ? body['index'] : headerIndex(answer);
    const text = cause ? `${message} (${cause})` : String(message);
    // A request raft did not settle in time may still be committed; so may any other the server broke off.
    return fromErrorCode(errorCode, text, { status, index, cause, outcomeUnknown: status >= 500 });
  }
  if (status === 401 || status === 403)
    return new EtcdInsufficientPermissions(`refused with ${status}: ${snippet(answer)}`, { status });
  if (status >= 500)
    return new EtcdConnectionFailed(`answered ${status}: ${snippet(answer)}`, { status, outcomeUnknown: true });
  return unusable(answer, 'is not from the v2 keys API');
}

function unusable(answer: WireAnswer, why: string): EtcdUnusableAnswer {
  const { status } = answer;
  const off = status === 404 && /404 page not found/.test(answer.body);
  const hint = off ? ' (etcd 3.4 and 3.5 serve /v2 only when started with --enable-v2; 3.6 dropped it)' : '';
  return new EtcdUnusableAnswer(`the answer ${why}${hint}: ${status} ${snippet(answer)}`, {
    status,
    outcomeUnknown: status < 300,
  });
}

function snippet({ body }: WireAnswer): string {
  const text = body.replace(/\s+/g, ' ').trim();
  return text === '' ? '(empty)' : show(text);
}
