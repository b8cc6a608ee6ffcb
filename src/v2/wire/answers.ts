import { show } from '../../checks.ts';
import { header, type WireAnswer, type WireReply } from '../../http/message.ts';
import type { Change, KeyEvent, Snapshot } from '../keys-api.ts';
import { isBelow, isChild } from '../paths.ts';
import { aboutAnother, decodeError, unusable } from './errors.ts';
import { etcdJson, parseObject } from './json.ts';
import { decodeIndex, decodeNode, decodeTopNode, encodeNode, type Writable } from './nodes.ts';

/**
 * @param key what was asked for
 * @throws {EtcdException} also for an answer about another key: whoever believed it would write there
 */
export function decodeSnapshot(answer: WireAnswer, key: string): Snapshot {
  const body = decodeBody(answer);
  const index = headerIndex(answer);
  // Without it a waiter could only guess where to watch from, and miss the event it waits for.
  if (index === undefined) throw unusable(answer, 'has no X-Etcd-Index (does a proxy drop it?)');
  const node = decodeTopNode(body['node'], answer);
  if (node.key !== key) throw aboutAnother(answer, node.key, key);
  return { clusterId: clusterIdOf(answer), sentAt: answer.sentAt, index, node };
}

export const encodeSnapshot = ({ node, index }: Snapshot): WireReply =>
  reply(200, index, { action: 'get', node: encodeNode(node) });

/**
 * @param key what was to be written or removed
 * @throws {EtcdException} also for an answer about another key
 */
export function decodeChange(answer: WireAnswer, key: string): Change {
  const change = decodeAnyChange(answer);
  if (change.node.key !== key) throw aboutAnother(answer, change.node.key, key);
  return change;
}

/**
 * @param dir where a file was to be made
 * @param value what it was to contain; undefined: anything
 * @throws {EtcdException} also for an answer about another directory or value
 */
export function decodeAppend(answer: WireAnswer, dir: string, value: string | undefined): Change {
  const change = decodeAnyChange(answer);
  const { node } = change;
  if (!isChild(node.key, dir)) throw aboutAnother(answer, node.key, `a key in ${dir}`);
  // Half a surrogate pair goes out as U+FFFD.
  if (value !== undefined && node.value !== value && node.value !== String(Buffer.from(value)))
    throw unusable(answer, `has the value ${show(node.value)}, not ${show(value)}`);
  return change;
}

function decodeAnyChange(answer: WireAnswer): Change {
  const body = decodeBody(answer);
  const { action, node, prevNode } = body;
  if (typeof action !== 'string') throw unusable(answer, 'has no action');
  const change: Writable<Change> = {
    clusterId: clusterIdOf(answer),
    sentAt: answer.sentAt,
    action,
    node: decodeNode(node, answer),
  };
  if (prevNode !== undefined) change.prevNode = decodeNode(prevNode, answer);
  if (change.prevNode && change.prevNode.key !== change.node.key)
    throw aboutAnother(answer, change.prevNode.key, change.node.key);
  return change;
}

/** @param quiet leave the nodes out (`noValueOnSuccess`); a removal tells them all the same */
export function encodeChange(change: Change, quiet: boolean): WireReply {
  const { action, node, prevNode } = change;
  const created = action === 'create' || (action === 'set' && prevNode === undefined);
  const removed = action === 'delete' || action === 'compareAndDelete';
  return reply(created ? 201 : 200, node.modifiedIndex, quiet && !removed ? { action } : encodeEvent(change));
}

/**
 * An empty body is how a server ends a wait it gives up: undefined.
 * @param key what was watched; an event on a directory above or, of a recursive watch, on a key below is about it, too
 * @throws {EtcdException} also for an event on another key
 */
export function decodeEvent(answer: WireAnswer, key: string): KeyEvent | undefined {
  if (answer.status === 200 && answer.body.trim() === '') return undefined;
  const change = decodeAnyChange(answer);
  if (!isAbout(change.node.key, key)) throw aboutAnother(answer, change.node.key, key);
  return { ...change, index: change.node.modifiedIndex };
}

/** Whether etcd reports an event on the key `at` to who watches `key`. It reports the removal of a directory `/a` to who watches `/ab/c`, too. */
const isAbout = (at: string, key: string): boolean => key.startsWith(at) || isBelow(at, key);

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
