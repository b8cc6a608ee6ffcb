import { Scope } from '../cancellation.ts';
import { createDebug } from '../debug.ts';
import { EtcdWatchTimedOut } from '../errors.ts';
import { Deadline } from '../time.ts';
import { unregisterOwn } from './entries/own-entries.ts';
import type { LeaveOptions, Ticket } from './store.ts';

const debug = createDebug('lock');

/** Seconds to wait for the release of an entry; after that, the release continues in the background. */
const GRACE = 1;
/** Like {@link GRACE}, but after the caller's timeout has passed: the caller should not have to wait much longer. */
const GRACE_AFTER_TIMEOUT = 0.3;

interface GiveUpOptions extends Pick<LeaveOptions, 'until'> {
  /** The error because of which the entry is removed, if any. After a timeout the wait is shorter. */
  readonly why?: unknown;
}

/**
 * Removes the own entry, or leaves it to expire at `until`. Waits at most {@link GRACE} seconds. Resolves to undefined if that is
 * done, otherwise to the error that prevented it; the work then continues in the background.
 */
export async function giveUp(ticket: Ticket, { why, until }: GiveUpOptions = {}): Promise<unknown> {
  const grace = why instanceof EtcdWatchTimedOut ? GRACE_AFTER_TIMEOUT : GRACE;
  const scope = new Scope().abortAt(
    Deadline.after(grace),
    () => new Error(`the entry in ${ticket.path} was not released within ${grace} s`),
  );
  try {
    const kept = until?.passed ? undefined : until;
    await ticket.leave({ signal: scope, until: kept });
    if (!kept) unregisterOwn(ticket);
    return undefined;
  } catch (error) {
    debug('%s: release continues in the background: %s', ticket.path, error);
    return error;
  } finally {
    scope.dispose();
  }
}
