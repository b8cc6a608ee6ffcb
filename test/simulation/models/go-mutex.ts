import { sleep } from '../client/chance.ts';
import { type GoAnswer, GoError } from './go-client.ts';
import type { GoSession } from './go-session.ts';

/** The session's key has gone while it waited. */
export class GoSessionExpired extends Error {
  override name = 'ErrSessionExpired';
}

const UNKNOWN = 2;
const UNAVAILABLE = 14;

/** Milliseconds before a watch that failed is opened again: the first pause, and the longest. */
const BACKOFF: readonly [number, number] = [1, 100];

const b64 = (text: string): string => Buffer.from(text).toString('base64');

/** `concurrency.Mutex` of Go. */
export class GoMutex {
  readonly #session: GoSession;
  readonly #prefix: string;
  readonly #looksAgain: boolean;
  readonly #key: string;

  /** @param looksAgain whether it looks for its own key after it has waited: from 3.5 on */
  constructor(session: GoSession, name: string, looksAgain: boolean) {
    this.#session = session;
    this.#prefix = `${name}/`;
    this.#key = `${this.#prefix}${BigInt(session.lease).toString(16)}`;
    this.#looksAgain = looksAgain;
  }

  /** Returns the revision of the answer that showed that it has the lock. */
  async lock(): Promise<bigint> {
    const { header, succeeded, responses = [] } = await this.#tryAcquire();
    const [own, first] = responses.map(({ response_range }) => response_range?.kvs?.[0]);
    const revision = succeeded ? header.revision : (own?.create_revision ?? '');
    if (!first || first.create_revision === revision) return BigInt(header.revision);
    try {
      const waited = await this.#waitDeletes(BigInt(revision) - 1n);
      if (!this.#looksAgain) return waited;
      const again = await this.#get({ key: b64(this.#key) });
      if (again.kvs?.length) return BigInt(again.header.revision);
    } catch (error) {
      await this.unlock().catch(() => {});
      throw error;
    }
    throw new GoSessionExpired();
  }

  async unlock(): Promise<void> {
    await this.#session.client.call('/v3/kv/deleterange', { key: b64(this.#key) });
  }

  #tryAcquire(): Promise<GoAnswer> {
    const key = b64(this.#key);
    const first = { request_range: { ...this.#range, sort_target: 'CREATE', sort_order: 'ASCEND', limit: '1' } };
    return this.#session.client.call('/v3/kv/txn', {
      compare: [{ key, target: 'CREATE', result: 'EQUAL', create_revision: '0' }],
      success: [{ request_put: { key, value: '', lease: this.#session.lease } }, first],
      failure: [{ request_range: { key } }, first],
    });
  }

  /** Waits until there is no key that was created up to a revision. Returns the revision that shows that. */
  async #waitDeletes(created: bigint): Promise<bigint> {
    const newest = { sort_target: 'CREATE', sort_order: 'DESCEND', limit: '1', max_create_revision: `${created}` };
    for (;;) {
      const { header, kvs: [last] = [] } = await this.#get({ ...this.#range, ...newest });
      if (!last) return BigInt(header.revision);
      await this.#waitDelete(last.key, BigInt(header.revision));
    }
  }

  /** Waits for the deletion of a key. The client opens a watch that fails again, behind what it has seen. */
  async #waitDelete(key: string, revision: bigint): Promise<void> {
    let [pause, longest] = BACKOFF;
    for (let next = revision; ; ) {
      try {
        const body = { create_request: { key, start_revision: `${next}` } };
        for await (const { events = [], canceled, cancel_reason } of this.#session.client.stream('/v3/watch', body)) {
          if (canceled) throw new GoError(UNKNOWN, cancel_reason ?? 'the watch was canceled');
          if (events.some(({ type }) => type === 'DELETE')) return;
          for (const { kv } of events) next = BigInt(kv.mod_revision) + 1n;
        }
      } catch (error) {
        if (!(error instanceof GoError) || error.code !== UNAVAILABLE) throw error;
      }
      pause = Math.min(pause * 1.25, longest);
      await sleep(pause);
    }
  }

  #get(range: object): Promise<GoAnswer> {
    return this.#session.client.call('/v3/kv/range', range, { isRepeatable: true });
  }

  /** All keys of the queue. */
  get #range() {
    return { key: b64(this.#prefix), range_end: b64(`${this.#prefix.slice(0, -1)}0`) };
  }
}
