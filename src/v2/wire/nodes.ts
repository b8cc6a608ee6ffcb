import type { Node } from '../../keys/api.ts';
import { show } from '../../keys/checks.ts';
import { isChild } from '../../keys/paths.ts';
import { aboutAnother, unusable } from './errors.ts';
import { isRecord } from './json.ts';
import type { WireAnswer } from './values.ts';

export type Writable<T> = { -readonly [field in keyof T]: T[field] };

/** etcd's answer for the root has no key and no indexes: no write ever made it. */
export function decodeTopNode(raw: unknown, answer: WireAnswer): Node {
  const isRoot = isRecord(raw) && raw['key'] === undefined && raw['dir'] === true;
  return decodeNode(isRoot ? { key: '/', createdIndex: 0, modifiedIndex: 0, ...raw } : raw, answer);
}

const NO_NODES: readonly Node[] = Object.freeze([]);
/** Levels of directories: a key as long as a request line of etcd can be has fewer. */
const DEEPEST = 2048;

export function decodeNode(raw: unknown, answer: WireAnswer, depth = 0): Node {
  if (!isRecord(raw) || typeof raw['key'] !== 'string') throw unusable(answer, 'has no node');
  const { key, value, dir, ttl, expiration, nodes, createdIndex, modifiedIndex } = raw;
  const node: Writable<Node> = {
    key,
    dir: isPresent(dir, 'boolean', 'dir', answer) && dir,
    createdIndex: decodeIndex(createdIndex, 'createdIndex', answer),
    modifiedIndex: decodeIndex(modifiedIndex, 'modifiedIndex', answer),
    nodes: nodes === undefined ? NO_NODES : decodeChildren(nodes, key, answer, depth + 1),
  };
  // Not by spreads: a listing may hold thousands of these.
  if (isPresent(value, 'string', 'value', answer)) node.value = value;
  if (isPresent(ttl, 'number', 'ttl', answer)) node.ttl = ttl;
  if (isPresent(expiration, 'string', 'expiration', answer)) node.expiration = expiration;
  return node;
}

/** Each has to be in the directory itself: whoever believed another key would write there. */
function decodeChildren(list: unknown, dir: string, answer: WireAnswer, depth: number): Node[] {
  if (!Array.isArray(list)) throw unusable(answer, `has nodes ${show(list)}, which is no list`);
  if (depth > DEEPEST) throw unusable(answer, `has more than ${DEEPEST} levels of directories`);
  const children: Node[] = [];
  // Not by map(), whose frames come on top where directories are deep.
  for (const raw of list) {
    const child = decodeNode(raw, answer, depth);
    if (!isChild(child.key, dir)) throw aboutAnother(answer, child.key, `a key in ${dir}`);
    children.push(child);
  }
  return children;
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
