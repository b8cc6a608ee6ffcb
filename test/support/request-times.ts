import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { onTestFinished, vi } from 'vitest';
import { RateLimit } from '../../src/http/failover/rate-limit.ts';
import { now } from './stalls/stalls.mjs';

/** Records when clients of this process send a request to one of these URLs, however late the machine delivers it. */
export function recordRequests(urls: readonly string[]): readonly number[] {
  const times: number[] = [];
  const onRequest = (message: unknown): void => {
    const { origin } = (message as { readonly request: { readonly origin: string } }).request;
    if (urls.includes(origin)) times.push(now());
  };
  subscribe('undici:request:create', onRequest);
  onTestFinished(() => void unsubscribe('undici:request:create', onRequest));
  return times;
}

/** Records when a client of this process counts a request, which it may send somewhat later on a busy machine. */
export function recordCounts(): readonly number[] {
  const times: number[] = [];
  const { count } = RateLimit.prototype;
  const spy = vi.spyOn(RateLimit.prototype, 'count').mockImplementation(function (this: RateLimit) {
    times.push(now());
    count.call(this);
  });
  onTestFinished(() => void spy.mockRestore());
  return times;
}

/** Records when a client of this process notices an outage: from then on it limits its requests. */
export function recordOutages(): readonly number[] {
  const times: number[] = [];
  const { startOutage } = RateLimit.prototype;
  const spy = vi.spyOn(RateLimit.prototype, 'startOutage').mockImplementation(function (this: RateLimit, requests) {
    if (!this.isOutage) times.push(now());
    startOutage.call(this, requests);
  });
  onTestFinished(() => void spy.mockRestore());
  return times;
}

/** Returns the highest count within one second. */
export function mostInASecond(times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  return Math.max(0, ...sorted.map((from) => sorted.filter((at) => at >= from && at < from + 1000).length));
}
