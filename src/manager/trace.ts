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
 * One request for a lock, as subscribers of `node:diagnostics_channel` get it: the same object with each message, more of it
 * filled in each time.
 */
export interface RequestTrace {
  readonly name: string;
  readonly mode: LockMode;
  readonly identity: string | undefined;
  /** Of its entry; undefined until it has one, as while it waits inside the process. */
  readonly key: string | undefined;
  readonly uuid: string | undefined;
  /** Set from `held` on. */
  readonly fencingToken: bigint | undefined;
  /** Seconds from the request to the hold. Set from `held` on. */
  readonly waited: number | undefined;
  /** Seconds from the hold to its loss, or to its release if it was not lost. */
  readonly held: number | undefined;
  /** The `EtcdLockLost`. Set from `lost` on. */
  readonly lost: unknown;
  /** Why the key could not be removed at once. Set at `released`; the removal is then retried in the background. */
  readonly cleanupError: unknown;
  /** What the call rejected with, or resolved to. Set by Node's `TracingChannel`. */
  readonly error?: unknown;
  readonly result?: unknown;
}

/** Publishes what happens to one request. */
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
