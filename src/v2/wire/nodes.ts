import { show } from '../../checks.ts';
import type { WireAnswer } from '../../http/message.ts';
import type { Node } from '../keys-api.ts';
import { isChild } from '../paths.ts';
import { aboutAnother, unusable } from './errors.ts';
import { isRecord } from './json.ts';

export type Writable<T> = { -readonly [field in keyof T]: T[field] };

/** etcd's answer for the root has no key and no indexes: no write ever made it. */
export function decodeTopNode(raw: unknown, answer: WireAnswer): Node {
  const isRoot = isRecord(raw) && raw['key'] === undefined && raw['dir'] === true;
  return decodeNode(isRoot ? { key: '/', createdIndex: 0, modifiedIndex: 0, ...raw } : raw, answer);
}

const NO_NODES: readonly Node[] = Object.freeze([]);

/** A directory whose children have not been decoded yet. */
interface Unread {
  readonly key: string;
  readonly list: unknown;
  readonly nodes: Node[];
}

/** Not by recursion: directories may be nested very deep. */
export function decodeNode(raw: unknown, answer: WireAnswer): Node {
  const unread: Unread[] = [];
  const top = decodeFields(raw, answer, unread);
  for (let next = unread.pop(); next; next = unread.pop()) decodeChildren(next, answer, unread);
  return top;
}

function decodeFields(raw: unknown, answer: WireAnswer, unread: Unread[]): Node {
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
  // Not by spreads: a listing may hold thousands of these.
  if (isPresent(value, 'string', 'value', answer)) node.value = value;
  if (isPresent(ttl, 'number', 'ttl', answer)) node.ttl = ttl;
  if (isPresent(expiration, 'string', 'expiration', answer)) node.expiration = expiration;
  if (nodes) unread.push({ key, list, nodes });
  return node;
}

/** Each has to be in the directory itself: whoever believed another key would write there. */
function decodeChildren({ key, list, nodes }: Unread, answer: WireAnswer, unread: Unread[]): void {
  if (!Array.isArray(list)) throw unusable(answer, `has nodes ${show(list)}, which is no list`);
  for (const raw of list) {
    const child = decodeFields(raw, answer, unread);
    if (!isChild(child.key, key)) throw aboutAnother(answer, child.key, `a key in ${key}`);
    nodes.push(child);
  }
}

interface Types {
  readonly boolean: boolean;
  readonly number: number;
  readonly string: string;
}

/** Whether an optional field is there. */
function isPresent<T extends keyof Types>(
  value: unknown,
  type: T,
  what: string,
  answer: WireAnswer,
): value is Types[T] {
  if (value === undefined) return false;
  if (typeof value === type && (type !== 'number' || Number.isSafeInteger(value))) return true;
  throw unusable(answer, `has ${what} ${show(value)}, which is no ${type}`);
}

/** In etcd's order, and like etcd without what is empty: a value alone may be. */
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

/** Beyond 2^53 a number is no longer exact, and a watch from a rounded index could miss its event. */
export function decodeIndex(value: unknown, what: string, answer: WireAnswer): number {
  const index = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  if (typeof index === 'number' && Number.isSafeInteger(index) && index >= 0) return index;
  throw unusable(answer, `has ${what} ${show(value)}, which is no index below 2^53`);
}
