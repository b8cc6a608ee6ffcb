import type { Source } from '../../../src/base/cancellation.ts';
import type { LockClient } from '../../../src/recipe/client.ts';
import type { Entry } from '../../../src/recipe/store.ts';
import { type UntilOptions, until } from '../../support/until.ts';

/** The kinds of requests that tests distinguish, on every store. */
export type RequestKind = 'read' | 'append' | 'overwrite' | 'renew' | 'remove' | 'wait';

/** A request that a client is about to send to its store. */
export interface StoreRequest {
  readonly kind: RequestKind;
  /** The key of an entry or the directory of a queue; for a wait, the key of the entry that it waits for. */
  readonly key: string;
  readonly signal: Source | undefined;
  /** Sends the request. */
  send(): Promise<unknown>;
}

/** Sends a request, or answers it instead of the store. */
export type Interceptor = (request: StoreRequest) => Promise<unknown>;

/** A client of the store under test, with what tests need besides the port. */
export interface StoreClient extends LockClient {
  /** Closes the client as `EtcdClient.close` does. */
  close(options?: { readonly timeout?: number }): Promise<void>;
  /** Passes all later requests of this client to the interceptor. Its `send` passes them to the previous interceptor. */
  intercept(interceptor: Interceptor): void;
  /** Returns a view of the queue of a lock. */
  view(lock: string): QueueView;
}

/** Opens another client of the same store. */
export type OpenClient = () => StoreClient | Promise<StoreClient>;

/** The queue of one lock, as the store has it. Tests read and change it without the code under test. */
export abstract class QueueView {
  /** The directory of the queue. */
  abstract readonly path: string;

  /** Returns the entries in the order in which they are served. */
  abstract entries(): Promise<readonly Entry[]>;

  /** Appends an entry that nobody renews. Its TTL is 600 seconds by default. */
  abstract put(value: string, ttl?: number): Promise<Entry>;

  abstract remove(key: string): Promise<void>;

  /** Sets another value, and removes the TTL. */
  abstract overwrite(key: string, value: string): Promise<void>;

  async values(): Promise<string[]> {
    return (await this.entries()).map(({ value }) => value);
  }

  /** Waits until the queue has this many entries, and returns them. */
  untilLength(count: number, options?: UntilOptions): Promise<readonly Entry[]> {
    return until(
      () => this.entries(),
      ({ length }) => length === count,
      options,
    );
  }
}
