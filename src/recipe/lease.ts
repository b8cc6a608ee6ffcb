import { Scope, type Source } from '../cancellation.ts';
import { createDebug } from '../debug.ts';
import { EtcdLockExpired, mayPass } from '../errors.ts';
import { atDeadline, Backoff, Deadline, now } from '../time.ts';
import { sleepUntilDue } from './due.ts';
import type { OwnEntry, Ticket } from './store.ts';

const debug = createDebug('lock');

/** Default of the seconds by which the clocks of the cluster's members may differ. */
export const defaultMargin = (ttl: number): number => Math.max(ttl / 10, 0.25);

/** Seconds before its deadline at which a lease gives up a renewal, so that the loss has the failures as its cause. */
const REPORT = 0.05;

/** Why a renewal under way is aborted. */
const STOPPED = new Error('the lease is renewed no more');

/**
 * How long the own entry of a ticket is certain to exist: from the moment the write that set its TTL was sent, on our own
 * clock, for TTL − margin. A lease once lost stays lost, whatever a later read says.
 */
export class Lease {
  readonly ticket: Ticket;
  readonly #margin: number | undefined;
  readonly #lost = new Scope();
  #entry: OwnEntry;
  #deadline: Deadline;
  #over = false;
  #renewals: Scope | undefined;
  #cancelTimer = () => {};
  /** Why the last renewal failed, if it did. */
  #trouble: unknown;

  /**
   * @param entry of the ticket, just written
   * @param margin seconds; undefined: {@link defaultMargin}
   */
  constructor(ticket: Ticket, entry: OwnEntry, margin: number | undefined) {
    this.ticket = ticket;
    this.#margin = margin;
    this.#entry = entry;
    this.#deadline = this.#deadlineOf(entry.granted, entry.sentAt);
    this.#watchDeadline();
  }

  /** Aborts when the lease is lost, with the error that says why; at the latest at the deadline. */
  get loss(): Scope {
    return this.#lost;
  }

  get entry(): OwnEntry {
    return this.#entry;
  }

  /** Whether the entry is certain to exist now, also if a blocked event loop has delayed the timer. */
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

  /** Counts from a later write. */
  extend(entry: OwnEntry): void {
    this.#entry = entry;
    this.#trouble = undefined;
    this.#deadline = this.#deadlineOf(entry.granted, entry.sentAt);
    this.#watchDeadline();
  }

  /** To be called before a write that sets this TTL is sent: it may be carried out though its answer is lost. */
  limit(ttl: number | null): void {
    const limit = this.#deadlineOf(ttl, now());
    if (limit.at >= this.#deadline.at) return;
    this.#deadline = limit;
    this.#watchDeadline();
  }

  /** Renews the entry every TTL/3 from now on. */
  keepAlive(): void {
    this.rest();
    this.#renewals = new Scope();
    void this.#renewUntil(this.#renewals);
  }

  /** Stops renewing; aborts a renewal under way. */
  rest(): void {
    this.#renewals?.abort(STOPPED);
    this.#renewals = undefined;
  }

  /** Stops renewing, and reports no loss any more. */
  stop(): void {
    this.#over = true;
    this.rest();
    this.#cancelTimer();
  }

  /** Declares the lease lost. */
  lose(reason: unknown): void {
    if (this.#over) return;
    debug('%s is lost: %s', this.#entry.key, reason);
    this.stop();
    this.#lost.abort(reason);
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
    const why = this.#renewals ? 'was not renewed in time' : 'has run out';
    this.lose(new EtcdLockExpired(`the lease of ${this.#entry.key} ${why}`, { cause: this.#trouble }));
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
        await this.#renewOnce(signal);
        if (!this.#trouble) backoff.reset();
      }
    } catch (error) {
      if (!signal.aborted) this.lose(error);
    }
  }

  /** Renews within the time that is left; remembers a failure that may pass. */
  async #renewOnce(signal: Source): Promise<void> {
    try {
      const timeout = Math.max(this.#deadline.remaining / 1000 - REPORT, REPORT);
      const entry = await this.ticket.renew({ signal, timeout });
      // Answered too late, perhaps because this process was stopped: the deadline counts.
      if (signal.aborted || !this.valid) return;
      this.extend(entry);
    } catch (error) {
      if (signal.aborted || !mayPass(error)) throw error;
      debug('%s: renewal failed: %s', this.#entry.key, error);
      this.#trouble = error;
    }
  }
}
