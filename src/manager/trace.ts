import { channel, tracingChannel } from 'node:diagnostics_channel';
import { type LockMode, parseValue } from '../recipe/entry-value.ts';
import type { OwnEntry } from '../recipe/store.ts';
import { now } from '../time.ts';
import type { Held } from './held.ts';

const NAME = 'etcd-v2-lock:request';

const calls = tracingChannel<unknown, Trace>(NAME);
const events = {
  wait: channel(`tracing:${NAME}:wait`),
  requeued: channel(`tracing:${NAME}:requeued`),
  held: channel(`tracing:${NAME}:held`),
  lost: channel(`tracing:${NAME}:lost`),
  released: channel(`tracing:${NAME}:released`),
};

/**
 * One request for a lock, as subscribers of `node:diagnostics_channel` get it. All events of a request have the same object, and
 * each event sets more of its fields.
 */
export interface RequestTrace {
  readonly name: string;
  readonly mode: LockMode;
  readonly identity: string | undefined;
  /** Key of the request's entry; undefined while there is none, for example while the request waits inside the process. */
  readonly key: string | undefined;
  readonly uuid: string | undefined;
  /** The `EtcdLockExpired` that says why the last entry was lost while waiting. Set at the event `requeued`. */
  readonly requeueCause: unknown;
  /** Set at the event `held`. */
  readonly fencingToken: bigint | undefined;
  /** Seconds from the request to the start of the hold. Set at the event `held`. */
  readonly waited: number | undefined;
  /** Seconds from the start of the hold to the loss, or to the release if there was no loss. Set at that event. */
  readonly held: number | undefined;
  /** The `EtcdLockLost`. Set at the event `lost`. */
  readonly lost: unknown;
  /** Why the key could not be removed, or left to expire, at once; this is retried in the background. Set at `released`. */
  readonly cleanupError: unknown;
  /** What the call rejected with. Set by Node's `TracingChannel`. */
  readonly error?: unknown;
  /** What the call resolved to. Set by Node's `TracingChannel`. */
  readonly result?: unknown;
}

/** Publishes the events of one request. */
export class Trace implements RequestTrace {
  readonly name: string;
  readonly mode: LockMode;
  readonly identity: string | undefined;
  key: string | undefined;
  uuid: string | undefined;
  requeueCause: unknown;
  fencingToken: bigint | undefined;
  waited: number | undefined;
  held: number | undefined;
  lost: unknown;
  cleanupError: unknown;
  readonly #begin = now();
  #heldSince = 0;

  constructor(name: string, mode: LockMode, identity: string | undefined) {
    this.name = name;
    this.mode = mode;
    this.identity = identity;
  }

  /** Runs the call. Node's `TracingChannel` publishes its start, end, result and error. */
  around<T>(call: () => Promise<T>): Promise<T> {
    return calls.tracePromise(call, this);
  }

  waits(): void {
    events.wait.publish(this);
  }

  queues({ key, value }: OwnEntry): void {
    this.key = key;
    this.uuid = parseValue(value).uuid;
  }

  /** The entry `key` was lost while waiting. The request queues up again with another one. */
  requeues(cause: unknown): void {
    this.requeueCause = cause;
    events.requeued.publish(this);
    this.key = undefined;
    this.uuid = undefined;
  }

  holds({ key, uuid, fencingToken }: Held): void {
    this.key = key;
    this.uuid = uuid;
    this.fencingToken = fencingToken;
    this.#heldSince = now();
    this.waited = (this.#heldSince - this.#begin) / 1000;
    events.held.publish(this);
  }

  loses(error: unknown): void {
    this.held = (now() - this.#heldSince) / 1000;
    this.lost = error;
    events.lost.publish(this);
  }

  releases(cleanupError: unknown): void {
    this.held ??= (now() - this.#heldSince) / 1000;
    this.cleanupError = cleanupError;
    events.released.publish(this);
  }
}
