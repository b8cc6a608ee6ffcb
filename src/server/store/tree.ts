import { etcdError } from '../../errors.ts';
import type { GetOptions, Node } from '../../v2/keys-api.ts';
import { baseName } from '../../v2/paths.ts';
import { toBytes } from '../../v2/wire.ts';

/** A key as the store keeps it: a directory where it has children. */
export interface Entry {
  readonly key: string;
  readonly parent: Entry | undefined;
  readonly children: Map<string, Entry> | undefined;
  readonly createdIndex: number;
  modifiedIndex: number;
  value: string | undefined;
  /** Milliseconds since the epoch; undefined when it never expires. */
  expiresAt: number | undefined;
}

const namesIn = (key: string): string[] => (key === '/' ? [] : key.slice(1).split('/'));

const join = (dir: string, name: string): string => (dir === '/' ? `/${name}` : `${dir}/${name}`);

export const newRoot = (): Entry => newEntry('/', undefined, 0, undefined);

/** An entry that is in no directory yet. Without a value it is a directory itself. */
function newEntry(key: string, parent: Entry | undefined, index: number, value: string | undefined): Entry {
  const children = value === undefined ? new Map<string, Entry>() : undefined;
  return { key, parent, children, createdIndex: index, modifiedIndex: index, value, expiresAt: undefined };
}

/**
 * @param index the store's, for the error
 * @throws {EtcdKeyNotFound} naming the first part of the key that is missing
 * @throws {EtcdNotDir} naming the file in the way
 */
export function find(root: Entry, key: string, index: number): Entry {
  let entry = root;
  for (const name of namesIn(key)) {
    if (!entry.children) throw etcdError(104, entry.key, index);
    const child = entry.children.get(name);
    if (!child) throw etcdError(100, join(entry.key, name), index);
    entry = child;
  }
  return entry;
}

/** The directory a key is in; made, and those above it, where it is missing. */
export function directoryOf(root: Entry, key: string, index: number): Entry {
  let dir = root;
  for (const name of namesIn(key).slice(0, -1)) {
    const child = dir.children?.get(name) ?? add(dir, name, index + 1, undefined);
    if (!child.children) throw etcdError(104, child.key, index);
    dir = child;
  }
  return dir;
}

/** Adds a file, or without a value a directory. */
export function add(dir: Entry, name: string, index: number, value: string | undefined): Entry {
  const entry = newEntry(join(dir.key, name), dir, index, value);
  dir.children?.set(name, entry);
  return entry;
}

export function detach({ key, parent }: Entry): void {
  parent?.children?.delete(baseName(key));
}

/** An entry and everything below it, the lowest first. Without recursion: a key may have more parts than the stack bears. */
export function withDescendants(entry: Entry): Entry[] {
  const found: Entry[] = [];
  const open = [entry];
  for (let next = open.pop(); next; next = open.pop()) {
    found.push(next);
    for (const child of next.children?.values() ?? []) open.push(child);
  }
  return found.reverse();
}

/** What an answer tells of an entry, without its children. */
export function describe(entry: Entry, now: number): Node {
  const { key, children, value, createdIndex, modifiedIndex } = entry;
  return {
    key,
    dir: children !== undefined,
    ...(value === undefined ? {} : { value }),
    ...expiryOf(entry, now),
    createdIndex,
    modifiedIndex,
    nodes: [],
  };
}

/** A difference of two times is no greater in Go: 2^63 nanoseconds, in seconds. */
const LONGEST_TTL = 9_223_372_036;

/** A TTL of 0 is left out; one that is over is told as what it is. */
function expiryOf({ expiresAt }: Entry, now: number): { expiration?: string; ttl?: number } {
  if (expiresAt === undefined) return {};
  const ttl = Math.max(Math.ceil((expiresAt - now) / 1000), -LONGEST_TTL);
  return { expiration: new Date(expiresAt).toISOString(), ...(ttl === 0 ? {} : { ttl }) };
}

/** What a read tells of an entry: with its children, and theirs when recursive. Hidden ones do not show. */
export function list(entry: Entry, { recursive = false, sorted = false }: GetOptions, now: number): Node {
  const node = describe(entry, now);
  if (!entry.children) return node;
  const shown = [...entry.children].filter(([name]) => !name.startsWith('_')).map(([, child]) => child);
  const nodes = shown.map((child) => (recursive ? list(child, { recursive, sorted }, now) : describe(child, now)));
  return { ...node, nodes: sorted ? byKey(nodes) : shuffled(nodes) };
}

/** In the order of their bytes, which is not that of UTF-16. */
function byKey(nodes: readonly Node[]): Node[] {
  const withBytes = nodes.map((node) => ({ node, bytes: toBytes(node.key) }));
  return withBytes.sort((a, b) => Buffer.compare(a.bytes, b.bytes)).map(({ node }) => node);
}

/** etcd's own order is a different one each time: who relies on one should find out here. */
function shuffled(nodes: Node[]): Node[] {
  for (let i = nodes.length - 1; i > 0; i -= 1) {
    const j = Math.floor(Math.random() * (i + 1));
    [nodes[i], nodes[j]] = [nodes[j] as Node, nodes[i] as Node];
  }
  return nodes;
}
