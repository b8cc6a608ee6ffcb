import { show } from '../../checks.ts';
import type { WireAnswer } from '../../http/message.ts';
import type { Node } from '../keys-api.ts';
import { isChild } from '../paths.ts';
import { unusable } from './errors.ts';
import { isRecord } from './json.ts';

export type Writable<T> = { -readonly [field in keyof T]: T[field] };

/** Decodes the node of a read. etcd's answer for the root has no key and no indexes. */
export function decodeTopNode(raw: unknown, answer: WireAnswer): Node {
  const isRoot = isRecord(raw) && raw['key'] === undefined && raw['dir'] === true;
  return decodeNode(isRoot ? { key: '/', createdIndex: 0, modifiedIndex: 0, ...raw } : raw, answer);
}

const NO_NODES: readonly Node[] = Object.freeze([]);

/** A directory whose children have not been decoded yet. */
interface Pending {
  readonly key: string;
  readonly list: unknown;
  readonly nodes: Node[];
}

/** Decodes a node and its children. Not recursive, because directories may be nested very deep. */
export function decodeNode(raw: unknown, answer: WireAnswer): Node {
  const pending: Pending[] = [];
  const top = decodeFields(raw, answer, pending);
  for (let next = pending.pop(); next; next = pending.pop()) decodeChildren(next, answer, pending);
  return top;
}

function decodeFields(raw: unknown, answer: WireAnswer, pending: Pending[]): Node {
  if (!isRecord(raw) || typeof raw['key'] !== 'string') throw unusable(answer, 'has no node');
  const { key, value, dir, ttl, expiration, nodes: list, createdIndex, modifiedIndex } = raw;
  const nodes: Node[] | undefined = list === undefined ? undefined : [];
  const node: Writable<Node> = {
    key,
    dir: isPresent(dir, 'boolean', 'dir', answer) && dir,
    createdIndex: decodeIndex(createdIndex, 'createdIndex', answer),
    modifiedIndex: decodeIndex(modifiedIndex, 'modifiedIndex', answer),
    nodes: nodes ?? NO_NODES,
  };
  // Spreads would be slow: a listing may contain thousands of nodes.
  if (isPresent(value, 'string', 'value', answer)) node.value = value;
  if (isPresent(ttl, 'number', 'ttl', answer)) node.ttl = ttl;
  if (isPresent(expiration, 'string', 'expiration', answer)) node.expiration = expiration;
  if (nodes) pending.push({ key, list, nodes });
  return node;
}

/** Decodes the children. Refuses a key that is not directly in the directory, because the caller might write to that key. */
function decodeChildren({ key, list, nodes }: Pending, answer: WireAnswer, pending: Pending[]): void {
  if (!Array.isArray(list)) throw unusable(answer, `has nodes ${show(list)}, which is not a list`);
  for (const raw of list) {
    const child = decodeFields(raw, answer, pending);
    if (!isChild(child.key, key)) throw unusable(answer, `is about ${show(child.key)}, which is not in ${show(key)}`);
    nodes.push(child);
  }
}

interface Types {
  readonly boolean: boolean;
  readonly number: number;
  readonly string: string;
}

/** Returns whether an optional field is present, and throws if it has the wrong type. */
function isPresent<T extends keyof Types>(
  value: unknown,
  type: T,
  what: string,
  answer: WireAnswer,
): value is Types[T] {
  if (value === undefined) return false;
  if (typeof value === type && (type !== 'number' || Number.isSafeInteger(value))) return true;
  throw unusable(answer, `has ${what} ${show(value)}, which is not a ${type}`);
}

/** Encodes a node with its fields in etcd's order. Like etcd, omits empty fields, except for an empty value. */
export function encodeNode({ key, value, dir, expiration, ttl, nodes, modifiedIndex, createdIndex }: Node): object {
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

/** Decodes an index. Refuses numbers beyond 2^53, which are not exact: a watch from a rounded index could miss its event. */
export function decodeIndex(value: unknown, what: string, answer: WireAnswer): number {
  const index = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof index === 'number' && Number.isSafeInteger(index) && index >= 0) return index;
  throw unusable(answer, `has ${what} ${show(value)}, which is not an index below 2^53`);
}
