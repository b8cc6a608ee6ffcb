import { Scope, type Source } from '../cancellation.ts';
import { createDebug } from '../debug.ts';
import { EtcdLockExpired, mayPass } from '../errors.ts';
import { atDeadline, Backoff, Deadline, now } from '../time.ts';
import type { KeysApi } from '../v2/keys-api.ts';
import { type Place, renew } from '../v2/locks/entry.ts';
import { STOPPED } from './background.ts';
import { sleepUntilDue } from './due.ts';

const debug = createDebug('lock');

/** Seconds the clocks of the cluster's members may differ by. */
export const defaultMargin = (ttl: number): number => Math.max(ttl / 10, 0.25);

/** Share of the TTL after which a renewal is sent to another member, too. */
const PATIENCE = 1 / 12;
/** Seconds before its deadline at which a lease gives a renewal up, so that the loss has the failures as its cause. */
const REPORT = 0.05;

export interface LeaseOptions {
  /** Seconds; see {@link defaultMargin}. */
  readonly margin: number | undefined;
  /** Told of every renewal. */
  readonly onRenewal: (place: Place) => void;
}

/**
 * How long a place can be vouched for: from the moment the write that set its TTL was sent, on our own clock, to that +
 * TTL − margin. A lease once lost stays lost, whatever a listing says.
 */
export class Lease {
  readonly #keys: KeysApi;
  readonly #options: LeaseOptions;
  readonly #lost = new Scope();
  #place: Place;
  #deadline: Deadline;
  #over = false;
  #renewals: Scope | undefined;
  #cancelTimer = () => {};
  /** Why the last renewal failed, if it did. */
  #trouble: unknown;

  constructor(keys: KeysApi, place: Place, options: LeaseOptions) {
    this.#keys = keys;
    this.#options = options;
    this.#place = place;
    this.#deadline = this.#deadlineOf(place.ttl, place.sentAt);
    this.#watchDeadline();
  }

  /** Aborts when the lease is lost, with the error that says why; no later than the deadline. */
  get loss(): Scope {
    return this.#lost;
  }

  get place(): Place {
    return this.#place;
  }

  /** Whether it can be vouched for right now, also where a blocked event loop kept the timer from firing. */
  get valid(): boolean {
    this.#checkDeadline();
    return !this.#lost.aborted;
  }

  /** @throws the error that says why, when the lease is lost */
  assertValid(): void {
    if (!this.valid) throw this.#lost.reason;
  }

  /** Seconds it can still be vouched for unless renewed; 0 once lost. */
  get expiresIn(): number {
    return this.valid ? this.#deadline.remaining / 1000 : 0;
  }

  /** Counts from a later write on. */
  extend(place: Place): void {
    this.#place = place;
    this.#trouble = undefined;
    this.#deadline = this.#deadlineOf(place.ttl, place.sentAt);
    this.#watchDeadline();
  }

  /** A write that sets this TTL is about to be sent: it may be carried out though its answer never comes. */
  limit(ttl: number | null): void {
    const limit = this.#deadlineOf(ttl, now());
    if (limit.at >= this.#deadline.at) return;
    this.#deadline = limit;
    this.#watchDeadline();
  }

  /** Renews every TTL/3 from now on. */
  keepAlive(): void {
    this.rest();
    this.#renewals = new Scope();
    void this.#renewUntil(this.#renewals);
  }

  /** Renews no more; ends a renewal in flight. */
  rest(): void {
    this.#renewals?.abort(STOPPED);
    this.#renewals = undefined;
  }

  /** Nothing more is done for it, and it is not told lost any more. */
  stop(): void {
    this.#over = true;
    this.rest();
    this.#cancelTimer();
  }

  /** Declares it lost. */
  lose(reason: unknown): void {
    if (this.#over) return;
    debug('%s is lost: %s', this.#place.key, reason);
    this.stop();
    this.#lost.abort(reason);
  }

  #deadlineOf(ttl: number | null, sentAt: number): Deadline {
    if (ttl === null) return Deadline.never;
    return new Deadline(sentAt + (ttl - (this.#options.margin ?? defaultMargin(ttl))) * 1000);
  }

  #watchDeadline(): void {
    this.#cancelTimer();
    this.#cancelTimer = atDeadline(this.#deadline, () => this.#checkDeadline(), { ref: false });
  }

  #checkDeadline(): void {
    if (!this.#deadline.passed) return;
    const why = this.#renewals ? 'was not renewed in time' : 'has run out';
    this.lose(new EtcdLockExpired(`the lease of ${this.#place.key} ${why}`, { cause: this.#trouble }));
  }

  async #renewUntil(signal: Source): Promise<void> {
    const backoff = new Backoff();
    let triedAt = now();
    try {
      for (;;) {
        const { ttl, sentAt } = this.#place;
        if (ttl === null) return;
        const due = this.#trouble ? triedAt + backoff.next() : sentAt + (ttl * 1000) / 3;
        await sleepUntilDue(due, signal);
        triedAt = now();
        await this.#renewOnce(ttl, signal);
        if (!this.#trouble) backoff.reset();
      }
    } catch (error) {
      if (!signal.aborted) this.lose(error);
    }
  }

  /** Renews within the time that is left; notes a failure that may pass. */
  async #renewOnce(ttl: number, signal: Source): Promise<void> {
    try {
      const timeout = Math.max(this.#deadline.remaining / 1000 - REPORT, REPORT);
      const place = await renew(this.#keys, this.#place, ttl, { signal, attemptTimeout: ttl * PATIENCE, timeout });
      // Answered too late, perhaps because this process was stopped: the deadline counts.
      if (signal.aborted || !this.valid) return;
      this.extend(place);
      this.#options.onRenewal(place);
    } catch (error) {
      if (signal.aborted || !mayPass(error)) throw error;
      debug('%s: renewal failed: %s', this.#place.key, error);
      this.#trouble = error;
    }
  }
}
