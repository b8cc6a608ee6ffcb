import type { Change, KeyEvent, Node, Snapshot } from '../../keys/api.ts';
import { show } from '../../keys/checks.ts';
import { decodeError, unusable } from './errors.ts';
import { etcdJson, isRecord, parseObject } from './json.ts';
import { header, type WireAnswer, type WireReply } from './values.ts';

export function decodeSnapshot(answer: WireAnswer): Snapshot {
  const body = decodeBody(answer);
  const index = headerIndex(answer);
  // Without it a waiter could only guess where to watch from, and miss the event it waits for.
  if (index === undefined) throw unusable(answer, 'has no X-Etcd-Index (does a proxy drop it?)');
  return { clusterId: clusterIdOf(answer), sentAt: answer.sentAt, index, node: decodeTopNode(body['node'], answer) };
}

export const encodeSnapshot = ({ node, index }: Snapshot): WireReply =>
  reply(200, index, { action: 'get', node: encodeNode(node) });

export function decodeChange(answer: WireAnswer): Change {
  const body = decodeBody(answer);
  const prevNode = body['prevNode'];
  const change: Writable<Change> = {
    clusterId: clusterIdOf(answer),
    sentAt: answer.sentAt,
    action: String(body['action']),
    node: decodeNode(body['node'], answer),
  };
  if (prevNode !== undefined) change.prevNode = decodeNode(prevNode, answer);
  return change;
}

type Writable<T> = { -readonly [field in keyof T]: T[field] };

/** @param quiet leave the nodes out (`noValueOnSuccess`); a removal tells them all the same */
export function encodeChange(change: Change, quiet: boolean): WireReply {
  const { action, node, prevNode } = change;
  const created = action === 'create' || (action === 'set' && prevNode === undefined);
  const removed = action === 'delete' || action === 'compareAndDelete';
  return reply(created ? 201 : 200, node.modifiedIndex, quiet && !removed ? { action } : encodeEvent(change));
}

/** An empty body is how a server ends a wait it gives up: undefined. */
export function decodeEvent(answer: WireAnswer): KeyEvent | undefined {
  if (answer.status === 200 && answer.body.trim() === '') return undefined;
  const change = decodeChange(answer);
  return { ...change, index: change.node.modifiedIndex };
}

/** How the answer to a wait begins, before there is an event. */
export const encodeWaiting = (index: number): WireReply => ({ status: 200, headers: keysHeaders(index), body: '' });

/** An event as a line of the answer to a wait. */
export const encodeEventLine = (event: KeyEvent): string => etcdJson(encodeEvent(event));

/** The index a wait began at, from the headers of its answer. */
export function decodeStart(answer: WireAnswer): number | undefined {
  return answer.status === 200 ? headerIndex(answer) : undefined;
}

export function clusterIdOf(answer: WireAnswer): string | undefined {
  return header(answer, 'x-etcd-cluster-id');
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

const NO_NODES: readonly Node[] = Object.freeze([]);

function decodeNode(raw: unknown, answer: WireAnswer): Node {
  if (!isRecord(raw) || typeof raw['key'] !== 'string') throw unusable(answer, 'has no node');
  const { key, value, dir, ttl, expiration, nodes, createdIndex, modifiedIndex } = raw;
  const node: Writable<Node> = {
    key,
    dir: dir === true,
    createdIndex: decodeIndex(createdIndex, 'createdIndex', answer),
    modifiedIndex: decodeIndex(modifiedIndex, 'modifiedIndex', answer),
    nodes: Array.isArray(nodes) ? nodes.map((child) => decodeNode(child, answer)) : NO_NODES,
  };
  // Not by spreads: a listing may hold thousands of these.
  if (typeof value === 'string') node.value = value;
  if (typeof ttl === 'number') node.ttl = ttl;
  if (typeof expiration === 'string') node.expiration = expiration;
  return node;
}

function decodeBody(answer: WireAnswer): Record<string, unknown> {
  const body = parseObject(answer.body);
  if (answer.status < 200 || answer.status > 299 || body?.['errorCode'] !== undefined) throw decodeError(answer, body);
  if (!body) throw unusable(answer, 'is not JSON');
  return body;
}

const encodeEvent = ({ action, node, prevNode }: Change) => ({
  action,
  node: encodeNode(node),
  ...(prevNode ? { prevNode: encodeNode(prevNode) } : {}),
});

/** In etcd's order, and like etcd without what is empty: a value alone may be. */
function encodeNode({ key, value, dir, expiration, ttl, nodes, modifiedIndex, createdIndex }: Node): object {
  return {
    key: key === '/' ? undefined : key,
    value,
    dir: dir || undefined,
    expiration,
    ttl: ttl || undefined,
    nodes: nodes.length === 0 ? undefined : nodes.map(encodeNode),
    modifiedIndex: modifiedIndex || undefined,
    createdIndex: createdIndex || undefined,
  };
}

const reply = (status: number, index: number, body: object): WireReply => ({
  status,
  headers: keysHeaders(index),
  body: etcdJson(body),
});

/** Raft's own index and term mean nothing to a client but "greater is later"; the store's index is that, too. */
const keysHeaders = (index: number) => ({
  'Content-Type': 'application/json',
  'X-Etcd-Index': String(index),
  'X-Raft-Index': String(index),
  'X-Raft-Term': '1',
});
