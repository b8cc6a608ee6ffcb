import { channel, tracingChannel } from 'node:diagnostics_channel';
import { type LockMode, parseValue } from '../recipe/entry-value.ts';
import type { OwnEntry } from '../recipe/store.ts';
import { now } from '../time.ts';
import type { Held } from './held.ts';

const NAME = 'etcd-v2-lock:request';

const calls = tracingChannel<unknown, Trace>(NAME);
const events = {
  wait: channel(`tracing:${NAME}:wait`),
  held: channel(`tracing:${NAME}:held`),
  lost: channel(`tracing:${NAME}:lost`),
  released: channel(`tracing:${NAME}:released`),
};

/**
 * One request for a lock, as told to subscribers of `node:diagnostics_channel`: the same object each time, which fills as
 * things happen.
 */
export interface RequestTrace {
  readonly name: string;
  readonly mode: LockMode;
  readonly identity: string | undefined;
  /** Its entry in etcd's queue, as soon as it has one; a wait inside the process has none. */
  readonly key: string | undefined;
  readonly uuid: string | undefined;
  /** From `held` on. */
  readonly fencingToken: bigint | undefined;
  /** Seconds from the request to the hold; from `held` on. */
  readonly waited: number | undefined;
  /** Seconds from the hold to its loss, or else its release. */
  readonly held: number | undefined;
  /** The `EtcdLockLost`; from `lost` on. */
  readonly lost: unknown;
  /** Why the key could not be removed at once, at `released`; it is tried further in the background. */
  readonly cleanupError: unknown;
  /** What the call was rejected with, or resolved to; both by Node's `TracingChannel`. */
  readonly error?: unknown;
  readonly result?: unknown;
}

/** Tells subscribers of one request. */
export class Trace implements RequestTrace {
  readonly name: string;
  readonly mode: LockMode;
  readonly identity: string | undefined;
  key: string | undefined;
  uuid: string | undefined;
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

  /** Runs the call inside the tracing channel. */
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
