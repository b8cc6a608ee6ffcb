import type { Source } from '../../../base/cancellation.ts';
import { Turns } from '../../../base/time.ts';
import { clientValue } from '../../../recipe/entries/bridged-value.ts';
import { withoutLimit } from '../../../recipe/entries/entry-value.ts';
import type { KeyEvent, Node } from '../../../v2/keys-api.ts';
import { type BridgedKey, bridged, isServed, nameOf } from '../target.ts';
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

/** Returns a node without children, with the value that the client has given, without the mark of a bridge. */
export const clientNode = ({ value, ...rest }: Node): Node => ({
  ...rest,
  ...(value === undefined ? {} : { value: clientValue(value) }),
});

/**
 * Returns a directory with the values that clients have given. Leaves out the directories of locks whose names a bridge refuses; see
 * {@link isServed}. Gives way to other requests. Not recursive, because directories may be nested very deep.
 * @param signal ends the work when it aborts
 */
export async function clientTree(top: Node, lockPrefix: string, signal?: Source): Promise<Node> {
  const turns = new Turns(signal);
  const nodes: Node[] = [];
  const pending = [{ from: top, to: nodes }];
  for (let next = pending.pop(); next; next = pending.pop()) {
    for (const child of next.from.nodes) {
      const pause = turns.step();
      if (pause) await pause;
      if (child.dir && !isServed(child.key, lockPrefix)) continue;
      const below: Node[] = [];
      next.to.push({ ...clientNode(child), nodes: below });
      if (child.nodes.length > 0) pending.push({ from: child, to: below });
    }
  }
  return { ...clientNode(top), nodes };
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

/** Returns the nodes of a queue with the extra entry. @param nodes in the order of their keys */
export function withPlaceholder(nodes: readonly Node[], placeholder: Node | undefined): readonly Node[] {
  if (!placeholder) return nodes;
  const at = nodes.findIndex(({ key }) => key > placeholder.key);
  return nodes.toSpliced(at < 0 ? nodes.length : at, 0, placeholder);
}
