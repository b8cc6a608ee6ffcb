import { clientValue } from '../../../recipe/entries/bridged-value.ts';
import { withoutLimit } from '../../../recipe/entries/entry-value.ts';
import type { KeyEvent, Node } from '../../../v2/keys-api.ts';
import { type BridgedKey, bridged, nameOf } from '../target.ts';
import type { Settled } from './queues.ts';

/** A key that a bridge to both stores serves. `placeholder`: the key of the extra entry of {@link placeholderIn}. */
export type BothKey = BridgedKey | { readonly kind: 'placeholder'; readonly path: string; readonly key: string };

/** Number of the extra entry if it is the first. etcd gives no key this number, and it sorts before all others. */
const FIRST = nameOf(0n);

/** Appended to the key of the entry before the extra entry, if there is one: the result sorts right after that key. */
const AFTER = '0';

const PLACEHOLDER = new RegExp(`^(.+)/(?:${FIRST}|\\d{20}${AFTER})$`, 's');

/**
 * Returns what a key stands for.
 * @throws {EtcdRootReadOnly} for a key that is not part of a lock; the message names the bridge
 */
export function bothKey(key: string, lockPrefix: string): BothKey {
  const at = bridged(key, lockPrefix);
  const [, path] = PLACEHOLDER.exec(key) ?? [];
  return path === undefined || path === lockPrefix ? at : { kind: 'placeholder', path, key };
}

/** Returns a node with the values that clients have given, without the mark of a bridge. */
export function clientNode({ nodes, value, ...rest }: Node): Node {
  return { ...rest, ...(value === undefined ? {} : { value: clientValue(value) }), nodes: nodes.map(clientNode) };
}

export function clientEvent({ node, prevNode, ...rest }: KeyEvent): KeyEvent {
  return { ...rest, node: clientNode(node), ...(prevNode ? { prevNode: clientNode(prevNode) } : {}) };
}

/**
 * Returns an extra entry for the queue on v2 while an entry that holds the lock on v2 is blocked on v3; else undefined. The extra
 * entry stands for the blocker on v3, and comes right before the first blocked entry. The entries before the extra entry hold
 * the lock.
 */
export function placeholderIn(path: string, { snapshot: { index }, obstacle, before }: Settled): Node | undefined {
  if (!obstacle) return undefined;
  const key = before === undefined ? `${path}/${FIRST}` : `${before}${AFTER}`;
  // Without its limit: nobody behind the extra entry may hold the lock together with it.
  const value = withoutLimit(clientValue(obstacle.nearest.value));
  return { key, value, dir: false, createdIndex: index, modifiedIndex: index, nodes: [] };
}

/** Returns the nodes of a queue with the extra entry, in order. */
export const withPlaceholder = (nodes: readonly Node[], placeholder: Node | undefined): readonly Node[] =>
  placeholder ? [...nodes, placeholder].toSorted((one, other) => (one.key < other.key ? -1 : 1)) : nodes;
