import { addAbortListener, ignore, removeAbortListener, Scope, type Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import type { Entry } from '../../recipe/store.ts';
import { atDeadline, Deadline } from '../../time.ts';
import type { V3Client } from '../client.ts';
import { longestSilence } from './timing.ts';

const debug = createDebug('watch');

interface WaitOptions {
  /** TTL of the own entry, in seconds; null: it never expires. */
  readonly ttl: number | null;
  readonly signal: Source | undefined;
}

/** A watch under way. */
interface Open {
  readonly key: string;
  /** Resolves to whether the watch has shown a change, or why the queue must be read again. Never rejects. */
  readonly ended: Promise<'changed' | 'failed'>;
  readonly stop: Scope;
}

/** Watches the entry that the own one waits for. One watch goes on over several waits for the same entry. */
export class PredecessorWatch {
  readonly #client: V3Client;
  #revision = 0n;
  #open: Open | undefined;

  constructor(client: V3Client) {
    this.#client = client;
  }

  /** Sets the revision of the last standing: later changes are not missed. */
  after(revision: bigint): void {
    this.#revision = revision;
  }

  /**
   * Waits until the entry may have changed. Resolves to false if the watch failed, so that the caller pauses before it reads.
   * @throws the reason of the signal
   */
  async changed({ key }: Entry, { ttl, signal }: WaitOptions): Promise<boolean> {
    if (this.#open?.key !== key) this.#begin(key);
    const open = this.#open as Open;
    const outcome = await outcomeOf(open.ended, Deadline.after(longestSilence(ttl)), signal);
    if (outcome !== 'silent') this.end();
    return outcome !== 'failed';
  }

  /** Ends the watch under way, if any. */
  end(): void {
    this.#open?.stop.abort(new Error('nobody waits any more'));
    this.#open = undefined;
  }

  #begin(key: string): void {
    this.end();
    const stop = new Scope();
    const ended = this.#client.requests.changed(key, this.#revision + 1n, { signal: stop }).then(
      () => 'changed' as const,
      (error: unknown) => {
        if (!stop.aborted) debug('watch of %s failed: %s', key, error);
        return 'failed' as const;
      },
    );
    this.#open = { key, ended, stop };
  }
}

/** Waits for the end of a watch, but no longer than the deadline. */
function outcomeOf(
  ended: Promise<'changed' | 'failed'>,
  until: Deadline,
  signal: Source | undefined,
): Promise<'changed' | 'failed' | 'silent'> {
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void): void => {
      cancel();
      if (signal) removeAbortListener(signal, onAbort);
      settle();
    };
    const onAbort = (reason: unknown): void => finish(() => reject(reason));
    const cancel = atDeadline(until, () => finish(() => resolve('silent')));
    if (signal) addAbortListener(signal, onAbort);
    ended.then((outcome) => finish(() => resolve(outcome)), ignore);
  });
}
