import { pause, type Scope, type Source } from '../cancellation.ts';
import { Backoff } from '../time.ts';

/** Why it has ended. */
export const STOPPED = new Error('stopped');

/** Work that goes on while nobody awaits it. */
export interface Running {
  /** Never rejects. */
  readonly ended: Promise<void>;
  readonly stop: Scope;
}

/** Ends it, and waits for its end. */
export async function stopped(running: Running | undefined): Promise<void> {
  running?.stop.abort(STOPPED);
  await running?.ended;
}

export interface KeepTryingOptions {
  /** Seconds between two attempts, at most. */
  readonly most: number;
  readonly closing: Source;
  /** Ends it. */
  readonly signal: Source;
}

/**
 * Attempts again and again, ever more slowly, as long as there is more to do. Closing leaves little time: it cuts the pause
 * under way short, and from then on attempts come at short intervals.
 */
export async function keepTrying(
  more: (hurried: boolean) => boolean,
  attempt: () => Promise<void>,
  { most, closing, signal }: KeepTryingOptions,
): Promise<void> {
  let backoff = new Backoff({ first: 500, most: most * 1000 });
  let hurried = false;
  while (more(hurried)) {
    await pause(backoff.next(), signal, ...(hurried ? [] : [closing]));
    if (signal.aborted) return;
    if (closing.aborted && !hurried) backoff = new Backoff({ first: 100, most: 500 });
    hurried = closing.aborted;
    await attempt();
  }
}
