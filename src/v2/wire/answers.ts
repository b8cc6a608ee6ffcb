import type { Source } from '../../base/cancellation.ts';
import { show } from '../../base/checks.ts';
import { header, type WireAnswer, type WireReply } from '../../http/message.ts';
import type { Change, KeyEvent, Snapshot } from '../keys-api.ts';
import { isBelow, isChild } from '../paths.ts';
import { aboutOtherKey, decodeError, unusable } from './errors.ts';
import { etcdJson, jsonText, parseObject } from './json.ts';
import { decodeIndex, decodeNode, decodeTopNode, encodeNode, encodeTree, type Writable } from './nodes.ts';

/**
 * Decodes the answer to a read.
 * @param key the key that was requested
 * @throws {EtcdException} also for an answer about another key, because the caller might write to that key
 */
export function decodeSnapshot(answer: WireAnswer, key: string): Snapshot {
  const body = decodeBody(answer);
  const index = headerIndex(answer);
  // Without an index, a waiter would not know where to watch from, and could miss its event.
  if (index === undefined) throw unusable(answer, 'has no X-Etcd-Index (does a proxy drop it?)');
  const node = decodeTopNode(body['node'], answer);
  if (node.key !== key) throw aboutOtherKey(answer, node.key, key);
  return { clusterId: clusterIdOf(answer), sentAt: answer.sentAt, index, node };
}

/**
 * Encodes the answer to a read. Gives way to other work if it is long.
 * @param signal ends the work when it aborts
 */
export const encodeSnapshot = async ({ node, index }: Snapshot, signal?: Source): Promise<WireReply> =>
  reply(200, index, `{"action":"get","node":${await encodeTree(node, signal)}}\n`);

/**
 * Decodes the answer to a write or a removal.
 * @param key the key that was requested
 * @throws {EtcdException} also for an answer about another key
 */
export function decodeChange(answer: WireAnswer, key: string): Change {
  const change = decodeAnyChange(answer);
  if (change.node.key !== key) throw aboutOtherKey(answer, change.node.key, key);
  return change;
}

/**
 * Decodes the answer to an append.
 * @param dir the directory of the new file
 * @param value the value of the new file; undefined: do not check the value
 * @throws {EtcdException} also for an answer about another directory or value
 */
export function decodeAppend(answer: WireAnswer, dir: string, value: string | undefined): Change {
  const change = decodeAnyChange(answer);
  const { node } = change;
  if (!isChild(node.key, dir)) throw unusable(answer, `is about ${show(node.key)}, which is not in ${show(dir)}`);
  // A lone surrogate is sent as U+FFFD.
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
    throw aboutOtherKey(answer, change.prevNode.key, change.node.key);
  return change;
}

/** @param quiet whether to omit the nodes (`noValueOnSuccess`); ignored for a removal, as in etcd */
export function encodeChange(change: Change, quiet: boolean): WireReply {
  const { action, node, prevNode } = change;
  const created = action === 'create' || (action === 'set' && prevNode === undefined);
  const removed = action === 'delete' || action === 'compareAndDelete';
  return reply(created ? 201 : 200, node.modifiedIndex, quiet && !removed ? etcdJson({ action }) : encodeEvent(change));
}

/**
 * Decodes the answer to a watch. Returns undefined for an empty body: the server has ended the watch without an event.
 * @param key the watched key
 * @throws {EtcdException} also for an event that does not concern the key
 */
export function decodeEvent(answer: WireAnswer, key: string): KeyEvent | undefined {
  if (answer.status === 200 && answer.body.trim() === '') return undefined;
  const change = decodeAnyChange(answer);
  if (!concerns(change.node.key, key)) throw aboutOtherKey(answer, change.node.key, key);
  return { ...change, index: change.node.modifiedIndex };
}

/**
 * Whether an event on the key `at` concerns a watcher of `key`. `at` may be a directory above or, in a recursive watch, a key
 * below. etcd also reports the removal of a directory `/a` to a watcher of `/ab/c`.
 */
const concerns = (at: string, key: string): boolean => key.startsWith(at) || isBelow(at, key);

/** Encodes the beginning of the answer to a watch, sent before there is an event. */
export const encodeWaiting = (index: number): WireReply => ({ status: 200, headers: keysHeaders(index), body: '' });

/** Encodes an event as a line of the answer to a watch. */
export const encodeEventLine = (event: KeyEvent): string => encodeEvent(event);

/** Returns the index at which a watch began, from the headers of its answer. */
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

const encodeEvent = ({ action, node, prevNode }: Change): string => {
  const before = prevNode ? `,"prevNode":${encodeNode(prevNode)}` : '';
  return `{"action":${jsonText(action)},"node":${encodeNode(node)}${before}}\n`;
};

const reply = (status: number, index: number, body: string): WireReply => ({
  status,
  headers: keysHeaders(index),
  body,
});

/** Clients use raft's index and term only to compare the age of answers. The store's index and a constant term serve as well. */
const keysHeaders = (index: number) => ({
  'Content-Type': 'application/json',
  'X-Etcd-Index': String(index),
  'X-Raft-Index': String(index),
  'X-Raft-Term': '1',
});
