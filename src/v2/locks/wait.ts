import { ignore, Scope, type Source } from '../../cancellation.ts';
import { createDebug } from '../../debug.ts';
import { isTransient } from '../../errors.ts';
import { atDeadline, Deadline, now } from '../../time.ts';
import type { KeysApi, WatchOptions } from '../keys-api.ts';
import { LONGEST_WAIT } from '../requests.ts';

const debug = createDebug('watch');

/** Why the queue should be read again. */
export type Woken =
  | { readonly by: 'event'; readonly index: number }
  /** Nothing for so long that the member may be the reason. */
  | { readonly by: 'silence' }
  /** The wait was cut short. */
  | { readonly by: 'trouble' };

export interface WaitOptions {
  /** Index of the listing that showed the entry: whatever happened since is not missed. */
  readonly after: number;
  /** Seconds our own entry lives; null when it never expires. */
  readonly ttl: number | null;
}

/** Seconds a poll lasts, and within which a wait whose connection died silently goes on, the look at the queue included. */
const cap = (ttl: number | null): number => Math.min((ttl ?? Number.POSITIVE_INFINITY) / 3, LONGEST_WAIT);

/** Members asked for the queue within the cap, one after the other, while each is silent: one of three that works is among them. */
const ASKED = 3;

/**
 * Seconds until another member is asked for the queue, should the one asked be silent. After a silent wait little is left of
 * the cap: the sooner another one is asked, the longer the wait can be. Yet no three of them in one second where there is
 * time: renewals that go to another member then come on top, until it is known that none answers.
 */
export const patience = (ttl: number | null, after: Woken['by']): number =>
  after === 'silence' ? Math.min(cap(ttl) / 8, 0.625) : Math.min(cap(ttl) / ASKED, 1);

/** Seconds a wait goes on without an event. */
const longest = (ttl: number | null): number => cap(ttl) - ASKED * patience(ttl, 'silence');

type Watching = Pick<KeysApi, 'watch'>;

/** A long poll under way. */
interface Poll {
  readonly key: string;
  readonly after: number;
  readonly ending: Scope;
  /** What it told; undefined when it was over without a word. */
  readonly told: Promise<Woken | undefined>;
}

/** The waits of one call, one at a time. A poll goes on while the queue is looked at because of its silence. */
export class Watch {
  readonly #keys: Watching;
  readonly #signal: Source;
  #poll: Poll | undefined;
  /** When the look at the queue has taken so long that another member was asked, which is to be polled then. */
  #slow = Deadline.never;

  constructor(keys: Watching, signal: Source) {
    this.#keys = keys;
    this.#signal = signal;
  }

  /** Waits until the key may have changed. An event says only that much: a python-etcd renewal is one, too. */
  async changed(key: string, { after, ttl }: WaitOptions): Promise<Woken> {
    if (this.#poll?.key !== key || this.#slow.passed) this.end();
    let cancel = ignore;
    const silence = new Promise<Woken>((resolve) => {
      cancel = atDeadline(Deadline.after(longest(ttl)), () => resolve({ by: 'silence' }));
    });
    try {
      for (;;) {
        this.#poll ??= this.#begin(key, after, ttl);
        const woken = await Promise.race([this.#poll.told, silence]);
        if (woken?.by === 'silence') {
          this.#slow = Deadline.after(patience(ttl, 'silence'));
          return woken;
        }
        const shown = woken?.by === 'event' && woken.index <= after && this.#poll.after < after;
        this.#poll = undefined;
        // An event told during the look may be one that the look has shown.
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

  #begin(key: string, after: number, ttl: number | null): Poll {
    const ending = new Scope(this.#signal);
    const told = poll(this.#keys, key, { after, timeout: cap(ttl), signal: ending });
    told.catch(ignore).finally(() => ending.dispose()); // it may fail while nobody waits for it
    return { key, after, ending, told };
  }
}

async function poll(
  keys: Watching,
  key: string,
  options: WatchOptions & { timeout: number },
): Promise<Woken | undefined> {
  const startedAt = now();
  try {
    const event = await keys.watch(key, options);
    if (event) return { by: 'event', index: event.index };
    return now() - startedAt >= options.timeout * 1000 ? undefined : { by: 'trouble' };
  } catch (error) {
    if (!isTransient(error)) throw error;
    debug('watching %s: %s', key, error);
    return { by: 'trouble' };
  }
}
