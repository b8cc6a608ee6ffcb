import { randomUUID } from 'node:crypto';
import { addAbortListener, type Source } from '../../../src/base/cancellation.ts';
import { EtcdConnectionFailed } from '../../../src/errors.ts';
import type { Interceptor, RequestKind, StoreClient } from './store-client.ts';

/** Returns a function that lists the kinds of the requests that the client has made since this call. */
export function requestsOf(client: StoreClient): () => readonly RequestKind[] {
  const kinds: RequestKind[] = [];
  client.intercept(({ kind, send }) => {
    kinds.push(kind);
    return send();
  });
  return () => kinds;
}

/** Returns a function that counts the client's reads that are unanswered, of those that it sends after this call. */
export function openReads(client: StoreClient): () => number {
  let open = 0;
  client.intercept(async ({ kind, send }) => {
    if (kind !== 'read') return send();
    open += 1;
    try {
      return await send();
    } finally {
      open -= 1;
    }
  });
  return () => open;
}

/** Holds back all renewals of the client: none is sent or answered. Returns the growing list of their signals. */
export function hangRenewals(client: StoreClient): readonly Source[] {
  const signals: Source[] = [];
  client.intercept(({ kind, signal, send }) => {
    if (kind !== 'renew') return send();
    if (signal) signals.push(signal);
    return new Promise((_, reject) => signal && addAbortListener(signal, reject));
  });
  return signals;
}

/** Makes all renewals of the client fail, without sending them. */
export function failRenewals(client: StoreClient, error: Error): void {
  client.intercept(({ kind, send }) => (kind === 'renew' ? Promise.reject(error) : send()));
}

/** Makes the next renewal of the client fail, without sending it. */
export const failNextRenewal = (client: StoreClient, error: Error): void =>
  interceptNext(client, 'renew', () => Promise.reject(error));

/** Makes the next removal of the client fail, without sending it. */
export const failNextRemoval = (client: StoreClient, error: Error): void =>
  interceptNext(client, 'remove', () => Promise.reject(error));

/** Lets the client send its next request of this kind, but makes it lose the answer. */
export const loseNextAnswer = (client: StoreClient, kind: RequestKind): void =>
  interceptNext(client, kind, async ({ send }) => {
    await send();
    throw new EtcdConnectionFailed('the answer was lost', { outcomeUnknown: true });
  });

/** Runs the action right before the client sends its next request of this kind. */
export const beforeNext = (client: StoreClient, kind: RequestKind, action: () => Promise<unknown>): void =>
  interceptNext(client, kind, async ({ send }) => {
    await action();
    return send();
  });

/** Runs the action right after the client has sent its next request of this kind, before the answer arrives. */
export const duringNext = (client: StoreClient, kind: RequestKind, action: () => void): void =>
  interceptNext(client, kind, ({ send }) => {
    const answer = send();
    action();
    return answer;
  });

/** Resolves to the key of the entry that the client waits for next. By then the client has read the queue. */
export const nextWait = (client: StoreClient): Promise<string> =>
  new Promise((resolve) => {
    interceptNext(client, 'wait', ({ key, send }) => {
      resolve(key);
      return send();
    });
  });

/** Appends an entry to a new queue and waits until it expires. Earlier entries with at most this TTL have expired by then. */
export async function untilExpiry(client: StoreClient, ttl: number): Promise<void> {
  const clock = client.view(`clock-${randomUUID()}`);
  await clock.put('clock', ttl);
  await clock.untilLength(0, { timeout: ttl * 1000 + 15_000, every: 50 });
}

function interceptNext(client: StoreClient, kind: RequestKind, interceptor: Interceptor): void {
  let done = false;
  client.intercept((request) => {
    if (done || request.kind !== kind) return request.send();
    done = true;
    return interceptor(request);
  });
}
