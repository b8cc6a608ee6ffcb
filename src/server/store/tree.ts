import { etcdError } from '../../v2/error-codes.ts';
import type { GetOptions, Node } from '../../v2/keys-api.ts';
import { baseName } from '../../v2/paths.ts';
import { toBytes } from '../../v2/wire.ts';

/** A key in the store's tree. A directory has `children`, a file has a `value`. {@link describe} makes a {@link Node} of it. */
export interface StoredNode {
  readonly key: string;
  readonly parent: StoredNode | undefined;
  readonly children: Map<string, StoredNode> | undefined;
  readonly createdIndex: number;
  modifiedIndex: number;
  value: string | undefined;
  /** Milliseconds since the epoch; undefined if the node never expires. */
  expiresAt: number | undefined;
}

const namesIn = (key: string): string[] => (key === '/' ? [] : key.slice(1).split('/'));

const join = (dir: string, name: string): string => (dir === '/' ? `/${name}` : `${dir}/${name}`);

export const newRoot = (): StoredNode => newNode('/', undefined, 0, undefined);

/** Returns a node that is not in its parent's `children` yet: a file, or a directory if `value` is undefined. */
function newNode(key: string, parent: StoredNode | undefined, index: number, value: string | undefined): StoredNode {
  const children = value === undefined ? new Map<string, StoredNode>() : undefined;
  return { key, parent, children, createdIndex: index, modifiedIndex: index, value, expiresAt: undefined };
}

/**
 * Returns the node of a key.
 * @param index the store's index, for the error
 * @throws {EtcdKeyNotFound} with the first missing part of the path
 * @throws {EtcdNotDir} with the file that the path goes through
 */
export function find(root: StoredNode, key: string, index: number): StoredNode {
  let stored = root;
  for (const name of namesIn(key)) {
    if (!stored.children) throw etcdError(104, stored.key, index);
    const child = stored.children.get(name);
    if (!child) throw etcdError(100, join(stored.key, name), index);
    stored = child;
  }
  return stored;
}

/**
 * Returns the directory that contains a key. Creates missing directories.
 * @param index the store's index
 * @throws {EtcdNotDir} with the file that the path goes through
 */
export function directoryOf(root: StoredNode, key: string, index: number): StoredNode {
  let dir = root;
  for (const name of namesIn(key).slice(0, -1)) {
    const child = dir.children?.get(name) ?? add(dir, name, index + 1, undefined);
    if (!child.children) throw etcdError(104, child.key, index);
    dir = child;
  }
  return dir;
}

/** Adds a file to a directory, or a directory if `value` is undefined. */
export function add(dir: StoredNode, name: string, index: number, value: string | undefined): StoredNode {
  const stored = newNode(join(dir.key, name), dir, index, value);
  dir.children?.set(name, stored);
  return stored;
}

/** Removes a node from its directory. */
export function detach({ key, parent }: StoredNode): void {
  parent?.children?.delete(baseName(key));
}

/** Returns a node and everything below it, each child before its parent. Not recursive: a deep key would overflow the stack. */
export function withDescendants(stored: StoredNode): StoredNode[] {
  const found: StoredNode[] = [];
  const pending = [stored];
  for (let next = pending.pop(); next; next = pending.pop()) {
    found.push(next);
    for (const child of next.children?.values() ?? []) pending.push(child);
  }
  return found.reverse();
}

/** Returns a node as an answer shows it, without its children. */
export function describe(stored: StoredNode, now: number): Node {
  const { key, children, value, createdIndex, modifiedIndex } = stored;
  return {
    key,
    dir: children !== undefined,
    ...(value === undefined ? {} : { value }),
    ...expiryOf(stored, now),
    createdIndex,
    modifiedIndex,
    nodes: [],
  };
}

/** The greatest difference of two times in Go, in seconds: 2^63 nanoseconds. */
const LONGEST_TTL = 9_223_372_036;

/** Returns the fields of an answer about expiry. A TTL of 0 is left out; after expiry the TTL is negative. */
function expiryOf({ expiresAt }: StoredNode, now: number): { expiration?: string; ttl?: number } {
  if (expiresAt === undefined) return {};
  const ttl = Math.max(Math.ceil((expiresAt - now) / 1000), -LONGEST_TTL);
  return { expiration: new Date(expiresAt).toISOString(), ...(ttl === 0 ? {} : { ttl }) };
}

/**
 * Returns a node as a read shows it: with its children, or with all descendants if `recursive`. Omits hidden nodes. Not recursive: see
 * {@link withDescendants}.
 */
export function list(stored: StoredNode, { recursive = false, sorted = false }: GetOptions, now: number): Node {
  const top = { ...describe(stored, now), nodes: [] as Node[] };
  const pending: { readonly from: StoredNode; readonly to: { nodes: Node[] } }[] = [{ from: stored, to: top }];
  for (let next = pending.pop(); next; next = pending.pop()) {
    const nodes: Node[] = [];
    for (const [name, child] of next.from.children ?? []) {
      if (name.startsWith('_')) continue;
      const node = { ...describe(child, now), nodes: [] as Node[] };
      nodes.push(node);
      if (recursive && child.children?.size) pending.push({ from: child, to: node });
    }
    next.to.nodes = sorted ? byKey(nodes) : shuffled(nodes);
  }
  return top;
}

/** Sorts by the bytes of the keys. Comparing them as UTF-16 strings would give another order. */
function byKey(nodes: readonly Node[]): Node[] {
  const withBytes = nodes.map((node) => ({ node, bytes: toBytes(node.key) }));
  return withBytes.sort((a, b) => Buffer.compare(a.bytes, b.bytes)).map(({ node }) => node);
}

/** Shuffles the nodes. etcd's order differs each time too, so code that relies on an order fails here as well. */
function shuffled(nodes: Node[]): Node[] {
  for (let i = nodes.length - 1; i > 0; i -= 1) {
    const j = Math.floor(Math.random() * (i + 1));
    [nodes[i], nodes[j]] = [nodes[j] as Node, nodes[i] as Node];
  }
  return nodes;
}
