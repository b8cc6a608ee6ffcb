import { channel, tracingChannel } from 'node:diagnostics_channel';
import { now } from '../base/time.ts';
import { EtcdException, type EtcdLockExpired, EtcdLockLost, EtcdLockTimeout } from '../errors.ts';
import type { LockMode } from '../recipe/entries/entry-value.ts';
import type { RenewalObserver } from '../recipe/lease.ts';
import { positionIn } from '../recipe/rules.ts';
import type { OwnEntry, Standing } from '../recipe/store.ts';
import type { Held } from './held.ts';

const NAME = 'etcd-v2-lock:request';

/** Returns the name of the channel on which an event of requests is published. */
export const channelOf = (event: string): string => `tracing:${NAME}:${event}`;

const calls = tracingChannel<unknown, Trace>(NAME);
const events = {
  wait: channel(channelOf('wait')),
  queued: channel(channelOf('queued')),
  requeued: channel(channelOf('requeued')),
  renewed: channel(channelOf('renewed')),
  renewalFailed: channel(channelOf('renewal-failed')),
  held: channel(channelOf('held')),
  lost: channel(channelOf('lost')),
  released: channel(channelOf('released')),
  outcome: channel(channelOf('outcome')),
};

/**
 * How a request ended:
 * - `held`: it held the lock until the release, even if the callback threw
 * - `joined`: it ran under an outer hold, as `reentrant` allows
 * - `unavailable`: the lock was taken, and `ifAvailable` was set
 * - `timeout`: the timeout passed before it held the lock
 * - `aborted`: its signal aborted, or another of its locks was lost, before it held this one
 * - `lost`: it lost the lock before the release
 * - `error`: it failed before it held the lock, in any other way
 */
export type RequestOutcome = 'held' | 'joined' | 'unavailable' | 'timeout' | 'aborted' | 'lost' | 'error';

/** One attempt to renew the entry of a request. */
export interface Renewal {
  /** Seconds until the renewal was answered or failed. */
  readonly latency: number;
  /** URL of the member that answered, or of the last one that failed; undefined if unknown. */
  readonly member: string | undefined;
  /** Why the renewal failed; undefined if it succeeded. */
  readonly error: unknown;
}

/**
 * One request for a lock, as subscribers of `node:diagnostics_channel` get it. All events of a request have the same object, whose fields
 * they set. Subscribers run in the async context (`AsyncLocalStorage`) of the request.
 */
export interface RequestTrace {
  /** Name of the lock. */
  readonly name: string;
  /** The request's option `mode`. */
  readonly mode: LockMode;
  /** The request's option `limit`. */
  readonly limit: number | undefined;
  /** The request's option `identity`. */
  readonly identity: string | undefined;
  /**
   * Key of the request's entry; undefined before there is one, for example while the request waits inside the process, and again after
   * the event `requeued`.
   */
  readonly key: string | undefined;
  /** The uuid in the value of that entry. */
  readonly uuid: string | undefined;
  /**
   * Position of the entry in the queue, from 1; undefined if the store does not know it. Set at the event `queued`, if that has a
   * subscriber. On etcd v3 it may also count entries of locks below this name, as `jobs/mail` is below `jobs`.
   */
  readonly position: number | undefined;
  /** The `EtcdLockExpired` that says why the last entry was lost while waiting. Set at the event `requeued`. */
  readonly requeueCause: EtcdLockExpired | undefined;
  /** The last renewal. Set at the events `renewed` and `renewal-failed`, if they have a subscriber. */
  readonly renewal: Renewal | undefined;
  /** The fencing token of the hold. Set at the event `held`. */
  readonly fencingToken: bigint | undefined;
  /** Seconds from the request to the start of the hold. Set at the event `held`. */
  readonly waited: number | undefined;
  /** Seconds from the start of the hold to the loss, or to the release if there was no loss. Set at that event. */
  readonly held: number | undefined;
  /** The `EtcdLockLost`. Set at the event `lost`. */
  readonly lost: EtcdLockLost | undefined;
  /**
   * Why the key could not be removed immediately (with `holdAtLeast`: why it could not be left to expire). Set at `released`. The
   * work is retried in the background.
   */
  readonly cleanupError: unknown;
  /** How the request ended. Set at the event `outcome`, which each request has exactly once. */
  readonly outcome: RequestOutcome | undefined;
  /** What the call rejected with. Set at the event `outcome` if the request failed before it held the lock, else at `error`. */
  readonly error: unknown;
  /** What the call resolved to. Set by Node's `TracingChannel`. */
  readonly result?: unknown;
}

/** A trace with fields that its channel has set. */
type With<Field extends keyof RequestTrace> = RequestTrace & {
  readonly [Name in Field]-?: NonNullable<RequestTrace[Name]>;
};
/** What a request has from its hold on. */
type HoldField = 'key' | 'uuid' | 'fencingToken' | 'waited';

/**
 * What subscribers get, by the event: the part of the channel's name after `tracing:etcd-v2-lock:request:`. Each type says which fields
 * are set at that event.
 */
export interface RequestMessages {
  /** The request begins. */
  readonly start: RequestTrace;
  /** It begins to wait. */
  readonly wait: RequestTrace;
  /** Its entry is in the queue. */
  readonly queued: With<'key' | 'uuid'>;
  /** Its entry was lost during the wait: it queues up again. */
  readonly requeued: With<'key' | 'uuid' | 'requeueCause'>;
  /** It holds the lock. */
  readonly held: With<HoldField>;
  /** Its entry was renewed. */
  readonly renewed: With<'renewal'>;
  /** A renewal failed. */
  readonly 'renewal-failed': With<'renewal'>;
  /** It has lost the lock. */
  readonly lost: With<HoldField | 'held' | 'lost'>;
  /** Its key is removed, or the removal continues in the background. */
  readonly released: With<HoldField | 'held'>;
  /** It neither waits nor holds any longer. */
  readonly outcome: With<'outcome'>;
  /** The call has returned its promise. */
  readonly end: RequestTrace;
  /** The promise has settled. */
  readonly asyncStart: RequestTrace;
  /** Those who waited for the promise have been called. */
  readonly asyncEnd: RequestTrace;
  /** The promise was rejected. */
  readonly error: RequestTrace;
}

/** Publishes the events of one request. */
export class Trace implements RequestTrace, RenewalObserver {
  readonly name: string;
  readonly mode: LockMode;
  readonly limit: number | undefined;
  readonly identity: string | undefined;
  key: string | undefined;
  uuid: string | undefined;
  position: number | undefined;
  requeueCause: EtcdLockExpired | undefined;
  renewal: Renewal | undefined;
  fencingToken: bigint | undefined;
  waited: number | undefined;
  held: number | undefined;
  lost: EtcdLockLost | undefined;
  cleanupError: unknown;
  outcome: RequestOutcome | undefined;
  error: unknown;
  readonly #begin = now();
  #heldSince = 0;

  constructor(name: string, { mode, limit, identity }: Pick<RequestTrace, 'mode' | 'limit' | 'identity'>) {
    this.name = name;
    this.mode = mode;
    this.limit = limit;
    this.identity = identity;
  }

  /**
   * Runs the call. Node's `TracingChannel` publishes its start, end, result and error.
   * @param signal the caller's signal
   */
  around<T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> {
    const fail = (error: unknown): never => {
      this.#fails(error, signal);
      throw error;
    };
    return calls.tracePromise(() => call().catch(fail), this);
  }

  waits(): void {
    events.wait.publish(this);
  }

  /** Records the entry that the request now has. */
  enters({ key }: OwnEntry, uuid: string): void {
    this.key = key;
    this.uuid = uuid;
  }

  /** Publishes `queued`: the first read of the queue has shown the entry. */
  queues(standing: Standing): void {
    if (!events.queued.hasSubscribers) return;
    this.position = positionIn(standing);
    events.queued.publish(this);
  }

  /** Publishes `requeued`: the entry was lost while waiting, and the request queues up again with another one. */
  requeues(cause: EtcdLockExpired): void {
    this.requeueCause = cause;
    events.requeued.publish(this);
    this.key = undefined;
    this.uuid = undefined;
    this.position = undefined;
  }

  renewed({ member }: OwnEntry, triedAt: number): void {
    if (!events.renewed.hasSubscribers) return;
    this.renewal = { latency: (now() - triedAt) / 1000, member, error: undefined };
    events.renewed.publish(this);
  }

  renewalFailed(error: unknown, triedAt: number): void {
    if (!events.renewalFailed.hasSubscribers) return;
    const member = error instanceof EtcdException ? error.failures.at(-1)?.endpoint : undefined;
    this.renewal = { latency: (now() - triedAt) / 1000, member, error };
    events.renewalFailed.publish(this);
  }

  holds({ key, uuid, fencingToken }: Held): void {
    this.key = key;
    this.uuid = uuid;
    this.fencingToken = fencingToken;
    this.#heldSince = now();
    this.waited = (this.#heldSince - this.#begin) / 1000;
    events.held.publish(this);
  }

  loses(error: EtcdLockLost): void {
    this.held = (now() - this.#heldSince) / 1000;
    this.lost = error;
    events.lost.publish(this);
    this.ends('lost');
  }

  releases(cleanupError: unknown): void {
    this.held ??= (now() - this.#heldSince) / 1000;
    this.cleanupError = cleanupError;
    events.released.publish(this);
    this.ends('held');
  }

  /** Publishes `outcome`: the request neither waits nor holds any longer. Further calls have no effect. */
  ends(outcome: RequestOutcome): void {
    if (this.outcome) return;
    this.outcome = outcome;
    events.outcome.publish(this);
  }

  /** Publishes the outcome of a call that rejected without one. Such an error never comes from the callback. */
  #fails(error: unknown, signal: AbortSignal | undefined): void {
    if (this.outcome) return;
    this.error = error;
    if (signal?.aborted && error === signal.reason) this.ends('aborted');
    else if (error instanceof EtcdLockTimeout) this.ends('timeout');
    else this.ends(error instanceof EtcdLockLost ? 'lost' : 'error');
  }
}
