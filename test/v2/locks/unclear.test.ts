import { expect, onTestFinished, test, vi } from 'vitest';
import { SEARCH_APPEND_FOR } from '../../../src/v2/locks/timing.ts';
import { UnclearAppends } from '../../../src/v2/locks/unclear.ts';

const key = (n: number) => ({ key: `/_locks/x/${n}`, rank: BigInt(n) });

test('an append is unclear until it is answered', () => {
  const appends = new UnclearAppends();
  expect(appends.any).toBe(false);
  appends.sent(undefined);
  expect(appends.any).toBe(true);
  appends.answered(key(4));
  expect(appends.any).toBe(false);
});

test('an unanswered append is unclear until its key is seen', () => {
  const appends = new UnclearAppends();
  appends.sent(key(4));
  appends.seen(key(9));
  expect(appends.any).toBe(false);
});

test('a key that existed before an append is not its result', () => {
  const appends = new UnclearAppends();
  appends.sent(key(4));
  appends.seen(key(3));
  appends.seen(key(4));
  expect(appends.any).toBe(true);
});

test('keys that were made, seen or read before an append are not its result', () => {
  for (const note of [
    (appends: UnclearAppends) => appends.answered(key(8)),
    (appends: UnclearAppends) => appends.seen(key(8)),
    (appends: UnclearAppends) => appends.existed(8n),
  ]) {
    const appends = new UnclearAppends();
    appends.sent(undefined);
    note(appends);
    if (appends.any) appends.answered();
    appends.sent(key(4));
    appends.seen(key(8));
    expect(appends.any).toBe(true);
    appends.seen(key(9));
    expect(appends.any).toBe(false);
  }
});

test('one key is the result of one append, however often it is listed', () => {
  const appends = new UnclearAppends();
  appends.sent(undefined);
  appends.sent(undefined);
  appends.seen(key(9));
  appends.seen(key(9));
  expect(appends.any).toBe(true);
  appends.seen(key(10));
  expect(appends.any).toBe(false);
});

test('the key of an answered append is not the result of an unanswered one', () => {
  const appends = new UnclearAppends();
  appends.sent(undefined);
  appends.sent(undefined);
  appends.answered(key(9));
  appends.seen(key(9));
  expect(appends.any).toBe(true);
});

test('an answered append is clear even if a new cluster gave it a lower number', () => {
  const appends = new UnclearAppends();
  appends.sent(key(1000));
  appends.answered(key(5));
  expect(appends.any).toBe(false);
});

test('a counter can inherit the unclear appends of an earlier one', () => {
  const earlier = new UnclearAppends();
  const later = new UnclearAppends();
  earlier.sent(key(4));
  later.inherit(earlier);
  expect([earlier.any, later.any]).toEqual([false, true]);
  later.seen(key(4));
  expect(later.any).toBe(true);
  later.seen(key(5));
  expect(later.any).toBe(false);
});

test('a counter also inherits the keys that the earlier one has counted', () => {
  const earlier = new UnclearAppends();
  const later = new UnclearAppends();
  earlier.sent(undefined);
  earlier.sent(undefined);
  earlier.answered(key(9));
  later.inherit(earlier);
  later.seen(key(9));
  expect(later.any).toBe(true);
});

test('appends are forgotten some time after the first read by quorum that followed the last of them', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const pass = (seconds: number) => vi.advanceTimersByTime(seconds * 1000);
  const appends = new UnclearAppends();
  appends.sent(undefined);
  appends.lost();
  pass(SEARCH_APPEND_FOR + 1);
  appends.existed(7n);
  pass(SEARCH_APPEND_FOR - 1);
  appends.sent(undefined);
  appends.lost();
  appends.existed(8n);
  pass(SEARCH_APPEND_FOR - 1);
  appends.existed(9n);
  expect(appends.any).toBe(true);
  pass(1);
  appends.existed(10n);
  expect(appends.any).toBe(false);
});

test('appends that are inherited are forgotten when the later ones of both are', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const [earlier, later] = [new UnclearAppends(), new UnclearAppends()];
  for (const appends of [earlier, later]) {
    appends.sent(undefined);
    appends.lost();
    appends.existed(7n);
    vi.advanceTimersByTime(10_000);
  }
  later.inherit(earlier);
  expect(earlier.any).toBe(false);
  vi.advanceTimersByTime((SEARCH_APPEND_FOR - 11) * 1000);
  later.existed(8n);
  expect(later.any).toBe(true);
  vi.advanceTimersByTime(1000);
  later.existed(9n);
  expect(later.any).toBe(false);
});
