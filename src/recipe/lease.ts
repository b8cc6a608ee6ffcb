import { AsyncContext } from '../base/async-context.ts';
import { Scope, type Source } from '../base/cancellation.ts';
import { createDebug } from '../base/debug.ts';
import { sleepUntilDue } from '../base/due.ts';
import { mayPassAtRenewal } from '../base/password-refused.ts';
import { atDeadline, Backoff, Deadline, now } from '../base/time.ts';
import { EtcdConnectionFailed, EtcdLockExpired, failuresOf } from '../errors.ts';
import { registerOwn } from './entries/own-entries.ts';
import type { OwnEntry, Ticket } from './store.ts';

const debug = createDebug('lock');

/** Gets the outcome of each renewal of a lease. Times are milliseconds on the monotonic clock. */
export interface RenewalObserver {
  renewed(entry: OwnEntry, triedAt: number): void;
  renewalFailed(error: unknown, triedAt: number): void;
}

/** Returns the default margin: the seconds by which the clocks of the cluster's members may differ. */
export const defaultMargin = (ttl: number): number => Math.max(ttl / 10, 0.25);

/** A renewal times out this many seconds before the lease's deadline, so that its error can be the `cause` of the loss. */
const REPORT = 0.05;

/** Abort reason of a renewal under way when renewals stop. */
const STOPPED = new Error('the renewals of the lease were stopped');

/**
 * The time during which the own entry of a ticket certainly exists: TTL − margin on the local monotonic clock. It begins when the
 * write that set the TTL was sent. A lost lease stays lost, even if a later read shows the entry.
 */
export class Lease {
  readonly ticket: Ticket;
  /** The async context of the request or `acquire` that this lease is for: whoever notices a loss, its listeners are called there. */
  readonly context = new AsyncContext();
  readonly #margin: number | undefined;
  readonly #lost = new Scope();
  #entry: OwnEntry;
  #deadline: Deadline;
  #over = false;
  #expired = false;
  #renewals: Scope | undefined;
  #observer: RenewalObserver | undefined;
  #cancelTimer = () => {};
  #endWatch: (() => void) | undefined;
  /** Error of the last renewal; undefined if it succeeded. */
  #trouble: unknown;
  #isRenewing = false;

  /**
   * @param entry the own entry of `ticket`, as of its last write
   * @param margin seconds; undefined: {@link defaultMargin}
   */
  constructor(ticket: Ticket, entry: OwnEntry, margin: number | undefined) {
    this.ticket = ticket;
    this.#margin = margin;
    this.#entry = entry;
    this.#deadline = this.#deadlineOf(entry.granted, entry.sentAt);
    this.#watchDeadline();
  }

  /** Aborts when the lease is lost, at the latest at its deadline. The abort reason says why. */
  get loss(): Scope {
    return this.#lost;
  }

  get entry(): OwnEntry {
    return this.#entry;
  }

  /** Whether the deadline had passed when the lease was lost. False after an earlier loss, such as by removal of the entry. */
  get expired(): boolean {
    return this.#expired;
  }

  /** Whether the entry certainly exists now. Checks the clock, because a blocked event loop may have delayed the timer. */
  get valid(): boolean {
    this.#checkDeadline();
    return !this.#lost.aborted;
  }

  /** @throws the error that says why the lease is lost, if it is */
  assertValid(): void {
    if (!this.valid) throw this.#lost.reason;
  }

  /** Seconds until the deadline; 0 once lost. */
  get expiresIn(): number {
    return this.valid ? this.#deadline.remaining / 1000 : 0;
  }

  /** Extends the lease after a later write of its entry. */
  extend(entry: OwnEntry): void {
    registerOwn(this.ticket, entry.granted);
    this.#trouble = undefined;
    this.update(entry);
  }

  /** Sets the deadline by the TTL of `entry`. The new deadline may be earlier or later than the old one. */
  update(entry: OwnEntry): void {
    this.#entry = entry;
    this.#deadline = this.#deadlineOf(entry.granted, entry.sentAt);
    this.#watchDeadline();
  }

  /**
   * Shortens the deadline to that of a write with this TTL, sent now; never extends it. Call this before sending such a write: the
   * store may commit the write even if the answer is lost.
   */
  shortenTo(ttl: number | null): void {
    const deadline = this.#deadlineOf(ttl, now());
    if (deadline.at >= this.#deadline.at) return;
    this.#deadline = deadline;
    this.#watchDeadline();
  }

  /** Renews the entry every TTL/3 from now on. */
  keepAlive(observer?: RenewalObserver): void {
    this.stopRenewing();
    this.#observer = observer;
    this.#renewals = new Scope();
    void this.#renewUntil(this.#renewals);
  }

  /** Makes the store report a loss when it notices one, which may be before the next renewal. Call this once the lock is held. */
  watch(): void {
    this.#endWatch ??= this.ticket.watch?.((why) => this.lose(why));
  }

  /** Stops renewing; aborts a renewal under way. */
  stopRenewing(): void {
    this.#renewals?.abort(STOPPED);
    this.#renewals = undefined;
  }

  /** Ends the lease: stops renewing, and no longer reports a loss. */
  stop(): void {
    this.#over = true;
    this.stopRenewing();
    this.#endWatch?.();
    this.#cancelTimer();
  }

  /** Ends the lease as lost, with this reason. Does nothing if the lease has ended. */
  lose(reason: unknown): void {
    if (this.#over) return;
    this.#expired = this.#deadline.passed;
    this.stop();
    this.context.run(() => {
      debug('%s is lost: %s', this.#entry.key, reason);
      this.#lost.abort(reason);
    });
  }

  #deadlineOf(ttl: number | null, sentAt: number): Deadline {
    if (ttl === null) return Deadline.never;
    return new Deadline(sentAt + (ttl - (this.#margin ?? defaultMargin(ttl))) * 1000);
  }

  #watchDeadline(): void {
    this.#cancelTimer();
    this.#cancelTimer = atDeadline(this.#deadline, () => this.#checkDeadline(), { ref: false });
  }

  #checkDeadline(): void {
    if (!this.#deadline.passed) return;
    const why = this.#renewals ? 'was not renewed in time' : 'has expired';
    const { key } = this.#entry;
    const unanswered = `the renewal of ${key} was not answered in time`;
    // If the event loop was blocked, the renewal under way has not reported its error yet.
    const cause = this.#trouble ?? (this.#isRenewing ? new EtcdConnectionFailed(unanswered) : undefined);
    const fields = { cause, failures: failuresOf(cause) };
    this.lose(new EtcdLockExpired(`the lease of ${key} ${why}`, fields));
  }

  async #renewUntil(signal: Source): Promise<void> {
    const backoff = new Backoff();
    let triedAt = now();
    try {
      for (;;) {
        const { granted, sentAt } = this.#entry;
        if (granted === null) return;
        const due = this.#trouble ? triedAt + backoff.next() : sentAt + (granted * 1000) / 3;
        await sleepUntilDue(due, signal);
        triedAt = now();
        await this.#renewOnce(signal, triedAt);
        if (!this.#trouble) backoff.reset();
      }
    } catch (error) {
      if (!signal.aborted) this.lose(error);
    }
  }

  /** Sends one renewal, with the time left as its timeout. Keeps an error that may pass in `#trouble`, and throws any other. */
  async #renewOnce(signal: Source, triedAt: number): Promise<void> {
    this.#isRenewing = true;
    try {
      const timeout = Math.max(this.#deadline.remaining / 1000 - REPORT, REPORT);
      const entry = await this.ticket.renew({ signal, timeout });
      // An answer after the deadline does not extend the lease: this process may have been suspended.
      if (signal.aborted || !this.valid) return;
      this.extend(entry);
      this.#observer?.renewed(entry, triedAt);
    } catch (error) {
      if (!signal.aborted) this.#observer?.renewalFailed(error, triedAt);
      if (signal.aborted || !mayPassAtRenewal(error)) throw error;
      debug('%s: renewal failed: %s', this.#entry.key, error);
      this.#trouble = error;
    } finally {
      this.#isRenewing = false;
    }
  }
}
