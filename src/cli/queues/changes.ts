import { holdersAmong } from '../../recipe/rules.ts';
import type { KeyEvent } from '../../v2/keys-api.ts';
import { type LockQueue, type ParsedEntry, parsedEntriesAmong } from '../../v2/locks/survey.ts';

/**
 * What happened to an entry. `released` by a holder, `left` by a waiter; `gone` where nobody knows which, or whether it
 * expired. `re-created` under the name it had: python-etcd renews so after its key expired.
 */
export type What =
  | 'queued'
  | 'acquired'
  | 'released'
  | 'left'
  | 'expired'
  | 'gone'
  | 're-created'
  | 'changed'
  | 'wiped';

export interface Happening {
  readonly what: What;
  readonly entry: ParsedEntry;
}

/** Where a lock's queue is. */
export interface LockPlace {
  readonly name: string;
  readonly path: string;
}

type Entries = LockQueue['entries'];

interface Words {
  readonly came?: What;
  readonly went?: (entry: ParsedEntry) => What;
}

/** What must have happened between two looks at a queue; a renewal is nothing. */
export function diff(
  before: Entries,
  after: Entries,
  { came = 'queued', went = () => 'gone' }: Words = {},
): Happening[] {
  const [was, is] = [byKey(before), byKey(after)];
  const [held, holders] = [byKey(holdersAmong(before)), holdersAmong(after)];
  const rewritten = after.filter(({ key, value }) => (was.get(key)?.value ?? value) !== value);
  return [
    ...before.filter(({ key }) => !is.has(key)).map((entry) => ({ what: went(entry), entry })),
    ...after.filter(({ key }) => !was.has(key)).map((entry) => ({ what: came, entry })),
    ...rewritten.map((entry): Happening => ({ what: entry.value === '' ? 'wiped' : 'changed', entry })),
    ...holders.filter(({ key }) => !held.has(key)).map((entry): Happening => ({ what: 'acquired', entry })),
  ];
}

/** The queue after an event, and what that was; events on locks inside this one are nothing to it. */
export function apply(
  { name, path }: LockPlace,
  before: Entries,
  event: KeyEvent,
): { readonly entries: Entries; readonly happenings: readonly Happening[] } {
  const { action, node } = event;
  const [changed] =
    node.key === `${path}${node.key.slice(node.key.lastIndexOf('/'))}` ? parsedEntriesAmong(name, [node]) : [];
  if (ENDS.has(action)) {
    // A directory takes with it what is inside.
    const entries = before.filter(({ key }) => key !== node.key && !key.startsWith(`${node.key}/`));
    const holders = byKey(holdersAmong(before));
    const ended = ({ key }: ParsedEntry): What => (holders.has(key) ? 'released' : 'left');
    return { entries, happenings: diff(before, entries, { went: action === 'expire' ? () => 'expired' : ended }) };
  }
  if (!changed) return { entries: before, happenings: [] };
  const others = before.filter(({ key }) => key !== changed.key);
  const entries = [...others, changed].sort((a, b) => (a.key < b.key ? -1 : 1));
  const came = action === 'set' && !event.prevNode ? 're-created' : 'queued';
  return { entries, happenings: diff(before, entries, { came }) };
}

const ENDS = new Set(['delete', 'compareAndDelete', 'expire']);

const byKey = (entries: Entries): ReadonlyMap<string, ParsedEntry> =>
  new Map(entries.map((entry) => [entry.key, entry]));
