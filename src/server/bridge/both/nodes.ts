import { clientValue } from '../../../recipe/entries/bridged-value.ts';
import type { KeyEvent, Node } from '../../../v2/keys-api.ts';
import { type BridgedKey, bridged, nameOf } from '../target.ts';
import type { Settled } from './queues.ts';

/** A key that a bridge to both stores serves. `turn`: the key of the extra entry of {@link turnIn}. */
export type BothKey = BridgedKey | { readonly kind: 'turn'; readonly path: string; readonly key: string };

/** Number of the extra entry if it is the first. etcd gives no key this number, and it sorts before all others. */
const FIRST = nameOf(0n);

/** Added to the key before it, if the extra entry is not the first: the result sorts right after that key. */
const AFTER = '0';

const TURN = new RegExp(`^(.+)/(?:${FIRST}|\\d{20}${AFTER})$`);

/**
 * Returns what a key stands for.
 * @throws {EtcdRootReadOnly} for a key that is not part of a lock; the message names the bridge
 */
export function bothKey(key: string, lockPrefix: string): BothKey {
  const at = bridged(key, lockPrefix);
  const [, path] = TURN.exec(key) ?? [];
  return path === undefined || path === lockPrefix ? at : { kind: 'turn', path, key };
}

/** Returns a node with the values that clients have given, without the mark of a bridge. */
export function clientNode({ nodes, value, ...rest }: Node): Node {
  return { ...rest, ...(value === undefined ? {} : { value: clientValue(value) }), nodes: nodes.map(clientNode) };
}

export function clientEvent({ node, prevNode, ...rest }: KeyEvent): KeyEvent {
  return { ...rest, node: clientNode(node), ...(prevNode ? { prevNode: clientNode(prevNode) } : {}) };
}

/**
 * Returns an extra entry for the queue on v2; undefined if none of the entries that hold the lock on v2 is blocked on v3. The extra
 * entry stands for the entry on v3 that blocks the first blocked one of them, and comes right before that one. Those before it hold
 * the lock.
 */
export function turnIn(path: string, { snapshot: { index }, blocker, before }: Settled): Node | undefined {
  if (!blocker) return undefined;
  const key = before === undefined ? `${path}/${FIRST}` : `${before}${AFTER}`;
  return { key, value: clientValue(blocker.value), dir: false, createdIndex: index, modifiedIndex: index, nodes: [] };
}

/** Returns the nodes of a queue with the extra entry, in order. */
export const withTurn = (nodes: readonly Node[], turn: Node | undefined): readonly Node[] =>
  turn ? [...nodes, turn].toSorted((one, other) => (one.key < other.key ? -1 : 1)) : nodes;
