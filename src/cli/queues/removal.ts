/** What the removal of an entry by force means, and what has come of it, for people. */
import { holdersAmong } from '../../recipe/rules.ts';
import type { LockQueue, ParsedEntry, Removal } from '../../recipe/survey.ts';
import { ownerOf } from './show.ts';

/** What happens to a waiter whose entry is removed. */
export const WAITER_REMOVED = `To end the wait of a waiter, stop its process. A removed waiter of a LockManager, such as "run", queues up again at the
end, unless it has an identity. A wait of python-etcd or of the class Lock fails.`;

/** Returns a sentence on what happens when the entry of a holder is removed. */
export function consequence({ name, entries }: LockQueue, entry: ParsedEntry): string {
  const before = holdersAmong(entries);
  const after = holdersAmong(entries.filter((other) => other !== entry));
  const successors = after.filter((other) => !before.includes(other)).map(ownerOf);
  const rest = after.length > 0 ? `the lock stays with ${after.map(ownerOf).join(', ')}` : 'the lock is free';
  const next = successors.length > 0 ? `the lock passes to ${successors.join(', ')} at once` : rest;
  return (
    `${entry.key} holds ${name}. After its removal, ${next}. ${ownerOf(entry)} continues to work until it notices ` +
    'the loss (a LockManager: usually within a third of the TTL, on etcd v3 within a second; ' +
    "python-etcd, Go's Mutex and etcdctl lock: never by themselves). " +
    'The removed holder and the next one may work at the same time, unless a fencing token stops the removed one.'
  );
}

/** Returns whether the entry is gone after an attempt to remove it, and a sentence on it. */
export function resultOf(removal: Removal, { key }: ParsedEntry): { readonly isGone: boolean; readonly text: string } {
  switch (removal) {
    case 'removed':
      return { isGone: true, text: `${key} removed.` };
    case 'absent':
      return {
        isGone: true,
        text: `${key} is gone. The answer to the removal was lost, so the entry may have expired or been released instead.`,
      };
    case 'gone':
      return { isGone: false, text: `${key} was not removed: it had already been released or had expired.` };
    case 'changed':
      return {
        isGone: false,
        text: `${key} was not removed: its value has changed since it was read. Inspect the lock again.`,
      };
    case 'present':
      return {
        isGone: false,
        text: `${key} still exists. The answer to the removal was lost, so etcd may still remove the entry. Inspect the lock again.`,
      };
  }
}
