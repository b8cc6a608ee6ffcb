import { addAbortListener, pause, removeAbortListener, Scope, type Source } from '../../base/cancellation.ts';
import { createDebug } from '../../base/debug.ts';
import { Backoff, type Clock, Deadline } from '../../base/time.ts';
import { EtcdException, EtcdLockTimeout, failuresOf, isTransient } from '../../errors.ts';
import { Attempt, deadlineUnlessZero } from '../../recipe/attempt.ts';
import type { LockStore, MarkerStore } from '../../recipe/store.ts';
import type { Held } from '../held.ts';
import { type Begun, begin, readRecord, recordEnd } from './begin.ts';
import { recordedTick, type TickRecord } from './record.ts';
import type { Schedule } from './schedule.ts';
import type { Tick, TickOutcome, TickReport } from './tick.ts';

const debug = createDebug('once');

/** Milliseconds between two reads of the record during the wait for the lock: the holder may have begun the tick. */
const READ_EVERY = { first: 500, most: 5000 };

/** Maximum seconds to record the end of a tick, or to finish the record of its start after `stop()`. The release of the lock waits for this. */
const RECORD_WITHIN = 3;

/** What ends the wait for the lock. */
export interface WaitLimits {
  /** Seconds. */
  readonly timeout: number;
  readonly signal: AbortSignal;
}

/** A job whose ticks are attempted. */
export interface TickJob {
  readonly store: LockStore;
  /** Name of the lock. */
  readonly name: string;
  /** Says who begins a tick, for people. */
  readonly label: string | undefined;
  readonly schedule: Schedule;
  readonly clock: Clock;
  /** Waits for the lock, and runs the work while it is held. */
  readonly lock: (limits: WaitLimits, work: (held: Held) => Promise<void>) => Promise<void>;
}

export type TickWork = (held: Held, tick: Tick) => unknown;

export interface TickLimits {
  /** Ends the wait for the lock. Has no effect on work under way. */
  readonly signal?: AbortSignal | undefined;
  /** Maximum seconds of the wait, which also ends when the next tick is due; 0: no limit. Default 0. */
  readonly timeout?: number;
}

/** Limits of the requests that write the record while the lock is held. */
const UNLIMITED = { blocking: true, timeout: 0, signal: undefined, deadline: Deadline.never } as const;

/** Abort reason of a wait or a read that is no longer needed. */
const BEGUN = new Error('the tick has been begun');

/** One attempt of this host at one tick. */
export class TickAttempt {
  readonly #job: TickJob;
  readonly #at: number;
  readonly #due: Date;
  readonly #path: string;
  readonly #markers: MarkerStore;
  readonly #signal: AbortSignal | undefined;
  /** Maximum seconds of the wait, and when they have passed. */
  readonly #timeout: number;
  readonly #until: Deadline;
  readonly #attempt: Attempt;
  /** Aborts when the next tick is due. */
  readonly #over = new Scope();
  /** The requests that write the record. */
  #writing: Attempt | undefined;
  /** Why the last read of the record during the wait for the lock has failed, if it has. */
  #unread: Error | undefined;
  #begun: Begun | undefined;
  /** Whether the work has returned while the lock was held. */
  #isDone = false;
  #taken: TickRecord | undefined;

  /** @param at the current tick by the clock of this host */
  constructor(job: TickJob, at: number, { signal, timeout = 0 }: TickLimits = {}) {
    const { store, name, schedule, clock } = job;
    this.#job = job;
    this.#at = at;
    this.#due = new Date(at);
    this.#path = store.queue(name).path;
    this.#markers = store.marker(name);
    this.#signal = signal;
    const next = Math.max(1, schedule.next(at) - clock.now()) / 1000;
    this.#timeout = timeout > 0 ? Math.min(timeout, next) : next;
    this.#until = Deadline.after(this.#timeout);
    // Do not pass `next` as a limit. Without one, a cluster that has never answered is tried only three times: the
    // address may be wrong.
    this.#attempt = new Attempt(store, this.#path, {
      blocking: true,
      timeout,
      signal,
      deadline: deadlineUnlessZero(timeout),
    });
    this.#attempt.abortWith(this.#over.abortAt(Deadline.after(next), () => this.#late()));
  }

  /**
   * Runs the work under the lock, unless a host has begun this tick or a later one. Resolves to what became of the tick on this host.
   * @throws the reason of the signal, if it ends the wait
   * @throws {EtcdClientClosed} if the client is closed during the wait
   */
  async run(work: TickWork): Promise<TickReport> {
    try {
      const { retry, signal } = this.#attempt;
      if (!(await retry(() => this.#readTaken(signal)))) await this.#lock(work);
      return this.#begun ? this.#report('ran', { tick: this.#begun.tick }) : this.#takenReport();
    } catch (error) {
      // The lock may be lost while the end of the tick is recorded: that does not concern the work.
      if (this.#begun && this.#isDone) return this.#report('ran', { tick: this.#begun.tick });
      if (this.#begun) return this.#report('failed', { tick: this.#begun.tick, error });
      if (this.#taken) return this.#takenReport();
      this.#signal?.throwIfAborted();
      this.#job.store.pending.closing.throwIfAborted();
      return this.#report('skipped', { error: error instanceof EtcdException ? error : this.#attempt.explain(error) });
    } finally {
      this.#attempt.dispose();
      this.#over.dispose();
    }
  }

  #report(outcome: TickOutcome, rest: Partial<TickReport>): TickReport {
    return { outcome, at: this.#due, tick: undefined, recorded: undefined, error: undefined, ...rest };
  }

  #takenReport(): TickReport {
    return this.#report('taken', this.#taken ? { recorded: recordedTick(this.#taken) } : {});
  }

  /** Reads whether a host has begun this tick or a later one. */
  async #readTaken(signal: Source): Promise<boolean> {
    const found = await readRecord(this.#markers, { signal });
    if (found && found.record.at >= this.#at) this.#taken = found.record;
    return this.#taken !== undefined;
  }

  async #lock(work: TickWork): Promise<void> {
    const waiting = new Scope(this.#signal);
    const reading = new Scope(waiting);
    void this.#endWait(waiting, reading);
    // In whole seconds, because the message of a timeout shows them.
    const timeout = Math.min(this.#timeout, Math.ceil(Math.max(1, this.#until.remaining) / 1000));
    try {
      await this.#job.lock({ timeout, signal: waiting.signal }, (held) => {
        reading.abort(BEGUN);
        return this.#underLock(held, work);
      });
    } finally {
      reading.abort(BEGUN);
      for (const scope of [reading, waiting]) scope.dispose();
    }
  }

  /** Ends the wait for the lock when its holder has begun the tick, or when the next tick is due. */
  async #endWait(waiting: Scope, reading: Scope): Promise<void> {
    const backoff = new Backoff(READ_EVERY);
    for (;;) {
      await pause(backoff.next(), reading);
      if (reading.aborted) return;
      if (await this.#readOnce(reading)) waiting.abort(BEGUN);
      else if (!this.#isCurrent) waiting.abort(this.#late());
    }
  }

  /** Like {@link TickAttempt.#readTaken}, but never rejects. */
  async #readOnce(signal: Source): Promise<boolean> {
    try {
      const isTaken = await this.#readTaken(signal);
      this.#unread = undefined;
      return isTaken;
    } catch (error) {
      if (!signal.aborted && error instanceof Error) this.#unread = error;
      return false;
    }
  }

  async #underLock(held: Held, work: TickWork): Promise<void> {
    const { label, schedule, clock } = this.#job;
    const assertWanted = (): void => {
      this.#signal?.throwIfAborted();
      if (!this.#isCurrent) throw this.#late();
    };
    const assertInTime = (): void => {
      if (clock.now() >= schedule.next(this.#at)) throw this.#late();
    };
    const result = await this.#begin({ markers: this.#markers, schedule, label, assertWanted, assertInTime });
    if ('tick' in result) await this.#work(held, result, work);
    else this.#taken = result;
  }

  /**
   * Begins the tick. Once the write may have been sent, the timeout no longer ends it, and an abort of the signal ends it
   * only three seconds later. Otherwise, the tick could be recorded in etcd, but never run.
   */
  async #begin(parts: Parameters<typeof begin>[0]): Promise<Begun | TickRecord> {
    const stopped = new Scope();
    const onStop = (reason: unknown) => void stopped.abortAt(Deadline.after(RECORD_WITHIN), () => reason);
    if (this.#signal) addAbortListener(this.#signal, onStop);
    const writing = new Attempt(this.#job.store, this.#path, UNLIMITED);
    for (const source of [this.#over, stopped]) writing.abortWith(source);
    this.#writing = writing;
    try {
      return await begin(parts, this.#at, { reading: this.#attempt, writing });
    } catch (error) {
      throw writing.explain(error);
    } finally {
      if (this.#signal) removeAbortListener(this.#signal, onStop);
      stopped.dispose();
      writing.dispose();
    }
  }

  /** Runs the work, then records whether it has succeeded. */
  async #work(held: Held, begun: Begun, work: TickWork): Promise<void> {
    this.#begun = begun;
    let state: 'ran' | 'failed' = 'failed';
    try {
      held.assertHeld();
      await work(held, begun.tick);
      held.assertHeld();
      state = 'ran';
      this.#isDone = true;
    } finally {
      await this.#recordEnd(begun, state);
    }
  }

  /** Records the end. Retries for some seconds. Never rejects: on failure, the next tick reports no recorded end. */
  async #recordEnd(begun: Begun, state: 'ran' | 'failed'): Promise<void> {
    const parts = { markers: this.#markers, schedule: this.#job.schedule };
    const over = new Scope().abortAt(Deadline.after(RECORD_WITHIN), () => new Error('no answer in time'));
    try {
      await recordEnd(parts, begun, state, { signal: over });
    } catch (error) {
      debug('%s: the end of a tick was not recorded: %s', parts.markers.key, error);
    } finally {
      over.dispose();
    }
  }

  get #isCurrent(): boolean {
    const { schedule, clock } = this.#job;
    return schedule.current(clock.now()) === this.#at;
  }

  /** Returns the error for a tick that was not begun in time. It has the last error of a request, if requests fail. */
  #late(): EtcdLockTimeout {
    const { trouble = this.#unread, reason } = (this.#writing ?? this.#attempt).state;
    const why = trouble ? `; ${trouble.message}` : '';
    return new EtcdLockTimeout(`${this.#path}: the next tick was due before this one could be begun${why}`, {
      reason: isTransient(trouble) ? 'unreachable' : reason,
      failures: failuresOf(trouble),
    });
  }
}
