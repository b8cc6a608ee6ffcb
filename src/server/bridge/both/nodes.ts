import { clientValue } from '../../../recipe/entries/bridged-value.ts';
import type { KeyEvent, Node } from '../../../v2/keys-api.ts';
import { nameOf } from '../target.ts';
import type { Settled } from './queues.ts';

/** Number of the entry that stands for those on v3 that come first. etcd gives no key this number, and it sorts before all others. */
export const TURN = 0n;

/** Returns a node with the values that clients have given. */
export function clientNode({ nodes, value, ...rest }: Node): Node {
  return { ...rest, ...(value === undefined ? {} : { value: clientValue(value) }), nodes: nodes.map(clientNode) };
}

export function clientEvent({ node, prevNode, ...rest }: KeyEvent): KeyEvent {
  return { ...rest, node: clientNode(node), ...(prevNode ? { prevNode: clientNode(prevNode) } : {}) };
}

/** Returns the entry that stands for the ones on v3 that the first client of v2 waits for; undefined if there is none. */
export function turnIn(path: string, { snapshot: { index }, blocker }: Settled): Node | undefined {
  if (!blocker) return undefined;
  const value = clientValue(blocker.value);
  return { key: `${path}/${nameOf(TURN)}`, value, dir: false, createdIndex: index, modifiedIndex: index, nodes: [] };
}
