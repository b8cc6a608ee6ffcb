// One timer serves any number of keys with TTLs.
import { expect, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../../../src/server/index.ts';
import { Store } from '../../../src/server/store/store.ts';
import { connect } from '../../support/clients.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { elapsed, moment } from '../../support/stalls/stalls.mjs';

function fresh() {
  const clock = new ManualClock();
  return { clock, store: new Store(clock) };
}

test('ten thousand keys with different TTLs need one timer, and each expires at its time', () => {
  const { clock, store } = fresh();
  for (let i = 0; i < 10_000; i += 1) {
    store.set(`/d/${i}`, '', { ttl: 1 + ((i * 7919) % 10_000) });
    expect(clock.outstanding).toBe(1);
  }
  for (const left of [9999, 9998, 9997]) {
    clock.advance(1000);
    expect(store.get('/d', {}).nodes).toHaveLength(left);
    expect(clock.outstanding).toBe(1);
  }
  clock.advance(10_000_000);
  expect(store.get('/d', {}).nodes).toEqual([]);
  expect(store.index).toBe(3 + 20_000);
  expect(clock.outstanding).toBe(0);
});

test('ten thousand keys that expire at once need one timer', () => {
  const { clock, store } = fresh();
  for (let i = 0; i < 10_000; i += 1) store.set(`/d/${i}`, '', { ttl: 60 });
  expect(clock.outstanding).toBe(1);
  clock.advance(60_000);
  expect(store.get('/d', {}).nodes).toEqual([]);
  expect(clock.outstanding).toBe(0);
});

test('a key renewed ten thousand times needs one timer', () => {
  const { clock, store } = fresh();
  store.set('/k', 'v', { ttl: 60 });
  for (let i = 0; i < 10_000; i += 1) {
    clock.advance(300);
    store.set('/k', undefined, { ttl: 60, refresh: true, prevValue: 'v' });
    expect(clock.outstanding).toBe(1);
  }
  expect(store.index).toBe(10_004);
  clock.advance(60_000);
  expect(store.index).toBe(10_005);
  expect(clock.outstanding).toBe(0);
});

test('ten thousand keys that are set and removed leave no timer', () => {
  const { clock, store } = fresh();
  for (let i = 0; i < 10_000; i += 1) {
    store.set('/k', 'v', { ttl: 60 });
    store.delete('/k', {});
  }
  clock.advance(60_000);
  expect(clock.outstanding).toBe(0);
  expect(store.index).toBe(20_003);
});

test('a stopped store has no timer, and its keys do not expire', () => {
  const { clock, store } = fresh();
  store.set('/k', 'v', { ttl: 1 });
  store.stop();
  expect(clock.outstanding).toBe(0);
  clock.advance(10_000);
  expect(store.get('/k', {}).value).toBe('v');
});

/** Milliseconds that the answers of so many requests at once may take. */
const MARGIN = 500;

test('by the real clock, each key expires within half a second after its TTL, never before', async () => {
  const etcd = await EmbeddedEtcd.start();
  onTestFinished(() => etcd.stop());
  const client = connect({ endpoints: etcd.url });
  const lives = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      const ttl = 1 + (i % 2);
      const asked = performance.now();
      const { node } = await client.set(`/k${i}`, 'v', { ttl });
      const answered = moment();
      const event = await client.watch(node.key, { after: node.modifiedIndex, timeout: 30 });
      return { action: event?.action, ttl: ttl * 1000, most: performance.now() - asked, least: elapsed(answered) };
    }),
  );
  for (const { action, ttl, most, least } of lives) {
    expect(action).toBe('expire');
    // The server counts the TTL from a time between the request and the answer.
    expect(most).toBeGreaterThanOrEqual(ttl - 1);
    expect(least).toBeLessThanOrEqual(ttl + 500 + MARGIN);
  }
});
