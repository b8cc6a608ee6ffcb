import { Scope } from '../base/cancellation.ts';
import { createDebug } from '../base/debug.ts';
import { Deadline, now } from '../base/time.ts';
import { unregisterOwn } from './entries/own-entries.ts';
import type { LeaveOptions, Ticket } from './store.ts';

const debug = createDebug('lock');

/** Seconds to wait for the release of an entry; after that, the release continues in the background. */
const GRACE = 1;
/** Maximum seconds to wait after the caller's timeout has passed: the caller should not have to wait much longer. */
const GRACE_AFTER_TIMEOUT = 0.3;
/** Minimum seconds to wait, even if the caller's timeout passed long ago: enough for one request. */
const SHORTEST_GRACE = 0.1;

interface GiveUpOptions extends Pick<LeaveOptions, 'until'> {
  /** When the caller's timeout has passed. Default: never. */
  readonly deadline?: Deadline | undefined;
}

/**
 * Removes the own entry, or leaves it to expire at `until`. Waits at most {@link GRACE} seconds, and normally at most until
 * {@link GRACE_AFTER_TIMEOUT} seconds after the caller's deadline. Resolves to undefined on success, otherwise to the error; the work
 * then continues in the background.
 */
export async function giveUp(
  ticket: Ticket,
  { deadline = Deadline.never, until }: GiveUpOptions = {},
): Promise<unknown> {
  const left = (deadline.at - now()) / 1000 + GRACE_AFTER_TIMEOUT;
  const grace = Math.min(GRACE, Math.max(SHORTEST_GRACE, left));
  const scope = new Scope().abortAt(
    Deadline.after(grace),
    () => new Error(`the entry in ${ticket.path} was not released within ${Number(grace.toPrecision(2))} s`),
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
