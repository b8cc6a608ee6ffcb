import { clientValue } from '../../../recipe/entries/bridged-value.ts';
import type { KeyEvent, Node } from '../../../v2/keys-api.ts';
import { nameOf } from '../target.ts';
import type { Settled } from './queues.ts';

/** Number of the extra entry of {@link turnIn}. etcd gives no key this number, and it sorts before all others. */
export const TURN = 0n;

/** Returns a node with the values that clients have given, without the mark of a bridge. */
export function clientNode({ nodes, value, ...rest }: Node): Node {
  return { ...rest, ...(value === undefined ? {} : { value: clientValue(value) }), nodes: nodes.map(clientNode) };
}

export function clientEvent({ node, prevNode, ...rest }: KeyEvent): KeyEvent {
  return { ...rest, node: clientNode(node), ...(prevNode ? { prevNode: clientNode(prevNode) } : {}) };
}

/**
 * Returns an extra entry for the queue on v2, which stands for the entry on v3 that blocks the first client on v2. Returns
 * undefined if there is no such entry.
 */
export function turnIn(path: string, { snapshot: { index }, blocker }: Settled): Node | undefined {
  if (!blocker) return undefined;
  const value = clientValue(blocker.value);
  return { key: `${path}/${nameOf(TURN)}`, value, dir: false, createdIndex: index, modifiedIndex: index, nodes: [] };
}
