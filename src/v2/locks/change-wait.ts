import { ignore, Scope, type Source } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { atDeadline, Deadline } from '../../base/time.ts';
import { isTransient } from '../../errors.ts';
import { hedgeReadAfter, longestSilence, pollCap } from '../../recipe/entries/timing.ts';
import type { KeysApi, WatchOptions } from '../keys-api.ts';
import type { Cause } from './timing.ts';

const debug = createDebug('watch');

/** Why a wait ended. */
export type WaitResult = { readonly by: 'event'; readonly index: number } | { readonly by: Exclude<Cause, 'event'> };

/** What a wait watches. */
export interface Watched {
  /** The key, or the directory of the keys in `among`. */
  readonly key: string;
  /** If set, only the removal of one of these keys, or of a directory above, counts as an event. */
  readonly among?: ReadonlySet<string> | undefined;
}

export interface WaitOptions {
  /** Index of the listing that showed the entry: later events are not missed. */
  readonly after: number;
  /** TTL of the own entry, in seconds; null: never expires. */
  readonly ttl: number | null;
  readonly signal: Source | undefined;
}

type Watching = Pick<KeysApi, 'watch'>;

/** A long poll under way. */
interface Poll {
  readonly key: string;
  readonly after: number;
  readonly ending: Scope;
  /** Resolves to undefined if the poll ended at its limit, without an event. */
  readonly ended: Promise<WaitResult | undefined>;
}

/**
 * Waits for changes of an entry, one wait at a time. A wait that ends with silence leaves its poll open while the queue is read.
 * The next wait for the same key continues that poll.
 */
export class ChangeWait {
  readonly #keys: Watching;
  #poll: Poll | undefined;
  /**
   * When the read after silence asks another member. If that time has passed, the member of the open poll may be down, so the next
   * wait begins a new poll.
   */
  #slow = Deadline.never;

  constructor(keys: Watching) {
    this.#keys = keys;
  }

  /** Waits until the key may have changed. An event need not be a change: python-etcd's renewals cause events, too. */
  async changed(watched: Watched, options: WaitOptions): Promise<WaitResult> {
    const { key } = watched;
    const { after, ttl } = options;
    if (this.#poll?.key !== key || this.#slow.passed) this.end();
    let cancel = ignore;
    const silence = new Promise<WaitResult>((resolve) => {
      cancel = atDeadline(Deadline.after(longestSilence(ttl)), () => resolve({ by: 'silence' }));
    });
    try {
      for (;;) {
        this.#poll ??= this.#begin(watched, options);
        const woken = await Promise.race([this.#poll.ended, silence]);
        if (woken?.by === 'silence') {
          this.#slow = Deadline.after(hedgeReadAfter(ttl, true));
          return woken;
        }
        const shown = woken?.by === 'event' && woken.index <= after && this.#poll.after < after;
        this.#poll = undefined;
        // Ignore an event that came during a read if the listing has already shown its effect.
        if (woken && !shown) return woken;
      }
    } finally {
      cancel();
    }
  }

  /** Ends the poll under way, if any. */
  end(): void {
    this.#poll?.ending.abort('over');
    this.#poll = undefined;
  }

  #begin(watched: Watched, { after, ttl, signal }: WaitOptions): Poll {
    const { key } = watched;
    const ending = new Scope(signal);
    const ended = poll(this.#keys, watched, { after, timeout: pollCap(ttl), signal: ending });
    ended.catch(ignore).finally(() => ending.dispose()); // the poll may fail while nobody waits for it
    return { key, after, ending, ended };
  }
}

async function poll(
  keys: Watching,
  { key, among }: Watched,
  { after, timeout, signal }: WatchOptions & { timeout: number },
): Promise<WaitResult | undefined> {
  const end = Deadline.after(timeout);
  let [from, left] = [after, timeout];
  try {
    for (;;) {
      const event = await keys.watch(key, { after: from, timeout: left, signal, recursive: among !== undefined });
      if (!event) return end.passed ? undefined : { by: 'failure' };
      // The removal of the directory, or of one above it, is reported with the key of that directory.
      const concerns = event.node.value === undefined && (among?.has(event.node.key) || key.startsWith(event.node.key));
      if (!among || concerns) return { by: 'event', index: event.index };
      from = event.index;
      left = end.remaining / 1000;
      if (left === 0) return undefined;
    }
  } catch (error) {
    if (!isTransient(error)) throw error;
    debug('watching %s: %s', key, error);
    return { by: 'failure' };
  }
}
