import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SEARCH_APPEND_FOR } from '../../../../src/recipe/entries/timing.ts';
import { READ_EVERY } from '../../../../src/v2/locks/timing.ts';
import { UnclearAppends } from '../../../../src/v2/locks/unclear.ts';

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

describe('appends', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());

  const READS = SEARCH_APPEND_FOR / READ_EVERY;

  function lose(appends: UnclearAppends): void {
    appends.sent(undefined);
    appends.lost();
  }

  /** Lets the search read this often. */
  function read(appends: UnclearAppends, times: number): void {
    for (let i = 0; i < times; i += 1) {
      vi.advanceTimersByTime(READ_EVERY * 1000);
      appends.existed(BigInt(i));
      appends.searched();
    }
  }

  test('are forgotten after the search that followed the last of them', () => {
    const appends = new UnclearAppends();
    lose(appends);
    read(appends, READS);
    lose(appends);
    read(appends, READS);
    expect(appends.any).toBe(true);
    read(appends, 1);
    expect(appends.any).toBe(false);
  });

  test('are not forgotten by an outage or a hold in which nothing was read', () => {
    const appends = new UnclearAppends();
    lose(appends);
    for (let i = 0; i < 3; i += 1) {
      vi.advanceTimersByTime(SEARCH_APPEND_FOR * 1000);
      read(appends, 1);
    }
    expect(appends.any).toBe(true);
  });

  test('are kept until what the last read has shown is dealt with', () => {
    const appends = new UnclearAppends();
    lose(appends);
    read(appends, READS);
    vi.advanceTimersByTime(READ_EVERY * 1000);
    appends.existed(99n);
    expect(appends.any).toBe(true);
    appends.searched();
    expect(appends.any).toBe(false);
  });

  test('of two tickets are searched for as long as those of which less is known', () => {
    const [earlier, later] = [new UnclearAppends(), new UnclearAppends()];
    for (const appends of [earlier, later]) lose(appends);
    read(later, READS);
    read(earlier, 3);
    later.inherit(earlier);
    expect(earlier.any).toBe(false);
    read(later, READS - 3);
    expect(later.any).toBe(true);
    read(later, 1);
    expect(later.any).toBe(false);
  });
});
