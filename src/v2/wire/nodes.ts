import type { Source } from '../../base/cancellation.ts';
import { show } from '../../base/checks.ts';
import { Turns } from '../../base/time.ts';
import { MAX_MEBIBYTES, MEBIBYTE } from '../../http/body.ts';
import type { WireAnswer } from '../../http/message.ts';
import { etcdError } from '../error-codes.ts';
import type { Node } from '../keys-api.ts';
import { isChild } from '../paths.ts';
import { unusable } from './errors.ts';
import { isRecord, jsonText } from './json.ts';

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

/** Returns the JSON of a node with all below it. */
export const encodeNode = (node: Node): string => [...jsonOf(node)].join('');

/**
 * Like {@link encodeNode}. Gives way to other work of this process if it is long.
 * @param signal ends the work when it aborts
 * @throws {EtcdException} if the JSON is longer than any answer that a client of this package accepts
 */
export async function encodeTree(top: Node, signal?: Source): Promise<string> {
  const turns = new Turns(signal);
  let json = '';
  for (const part of jsonOf(top)) {
    const pause = turns.step();
    if (pause) await pause;
    json += part;
    if (json.length > MAX_MEBIBYTES * MEBIBYTE)
      throw etcdError(300, `the listing of ${top.key} has more than ${MAX_MEBIBYTES} MiB`, 0);
  }
  return json;
}

/**
 * Yields the JSON of a node with all below it, in parts. The fields are in etcd's order. Like etcd, omits empty fields, except for an
 * empty value. Not recursive, because directories may be nested very deep.
 */
function* jsonOf(top: Node): Generator<string> {
  const pending: (Node | string)[] = [top];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next === 'string') {
      yield next;
      continue;
    }
    const { key, value, dir, expiration, ttl, nodes, modifiedIndex, createdIndex } = next;
    const begin = {
      key: key === '/' ? undefined : key,
      value,
      dir: dir || undefined,
      expiration,
      ttl: ttl || undefined,
    };
    const end = { modifiedIndex: modifiedIndex || undefined, createdIndex: createdIndex || undefined };
    if (nodes.length === 0) {
      yield jsonText({ ...begin, ...end });
      continue;
    }
    yield `${jsonText(begin).slice(0, -1)},"nodes":[`;
    const indexes = jsonText(end).slice(1, -1);
    pending.push(indexes === '' ? ']}' : `],${indexes}}`);
    for (let i = nodes.length - 1; i >= 0; i -= 1) {
      pending.push(nodes[i] as Node);
      if (i > 0) pending.push(',');
    }
  }
}

/** Decodes an index. Refuses numbers beyond 2^53, which are not exact: a watch from a rounded index could miss its event. */
export function decodeIndex(value: unknown, what: string, answer: WireAnswer): number {
  const index = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof index === 'number' && Number.isSafeInteger(index) && index >= 0) return index;
  throw unusable(answer, `has ${what} ${show(value)}, which is not an index below 2^53`);
}
