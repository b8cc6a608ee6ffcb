import { describe, expect, test } from 'vitest';
import { SEARCH_APPEND_FOR } from '../../../../src/recipe/entries/timing.ts';
import { READ_EVERY } from '../../../../src/v2/locks/timing.ts';
import {
  answered,
  joined,
  lost,
  NO_APPENDS,
  searched,
  seen,
  sent,
  type UnclearAppends,
} from '../../../../src/v2/locks/unclear.ts';

const key = (n: number) => ({ key: `/_locks/x/${n}`, rank: BigInt(n) });

/** One append that was sent after the own entry with this number. */
const one = (last?: number) => sent(NO_APPENDS, last === undefined ? undefined : key(last));
const two = sent(one(), undefined);

test.each<[sentence: string, appends: UnclearAppends, count: number]>([
  ['is unclear until it is answered', one(), 1],
  ['that is answered is clear', answered(one(), key(4)), 0],
  ['that is refused is clear', answered(one()), 0],
  ['whose answer is lost stays unclear', lost(one()), 1],
  ['is clear when its key is seen', seen(one(4), key(9)), 0],
  ['did not create a key that existed before', seen(seen(one(4), key(3)), key(4)), 1],
  ['did not create a key that an earlier one has created', seen(sent(answered(one(), key(8)), key(4)), key(8)), 1],
  ['did not create a key that was seen before', seen(sent(seen(one(), key(8)), key(4)), key(8)), 1],
  ['did not create a key that was read before', seen(sent(answered(searched(one(), 8, 0)), key(4)), key(8)), 1],
  ['may have created a later key than the one read before', seen(sent(searched(NO_APPENDS, 8, 0), key(4)), key(9)), 0],
  ['of two is clear when its key is seen, however often', seen(seen(two, key(9)), key(9)), 1],
  ['of two is clear when the second key is seen', seen(seen(two, key(9)), key(10)), 0],
  ['did not create the key of another one that was answered', seen(answered(two, key(9)), key(9)), 1],
  ['is clear once answered, even if a new cluster gave it a lower number', answered(one(1000), key(5)), 0],
  ['that was not sent cannot be seen', seen(NO_APPENDS, key(9)), 0],
  ['of an earlier ticket is unclear for the later one', joined(NO_APPENDS, one(4)), 1],
  ['of an earlier ticket did not create a key that existed', seen(joined(NO_APPENDS, one(4)), key(4)), 1],
  ['of an earlier ticket may have created a later key', seen(joined(NO_APPENDS, one(4)), key(5)), 0],
  ['of two tickets may have created what the older one may have', seen(joined(one(7), one(4)), key(5)), 1],
  ['of two tickets may have created what the newer one has not', seen(joined(one(4), one(7)), key(5)), 1],
  [
    'of two may have created a key that existed before the second',
    seen(sent(searched(one(4), 8, 0), key(4)), key(6)),
    1,
  ],
  ['of an earlier ticket did not create a key that was counted', seen(joined(one(), answered(two, key(9))), key(9)), 2],
  ['is unclear when nothing is inherited', joined(one(4), NO_APPENDS), 1],
])('an append %s', (_, appends, count) => {
  expect(appends.count).toBe(count);
});

test('what an earlier ticket knows of the keys that exist also counts for the later one', () => {
  const later = sent(joined(NO_APPENDS, searched(NO_APPENDS, 8, 0)), key(4));
  expect(seen(later, key(8)).count).toBe(1);
});

describe('a search', () => {
  const READS = SEARCH_APPEND_FOR / READ_EVERY;
  const unanswered = lost(one());

  /** Reads that often, at intervals of `every` seconds from a second on. */
  const read = (appends: UnclearAppends, times: number, every = READ_EVERY, from = 0): UnclearAppends =>
    Array.from({ length: times }).reduce<UnclearAppends>(
      (searching, _, i) => searched(searching, i, (from + i * every) * 1000),
      appends,
    );

  test('begins with its first read, and ends after two minutes', () => {
    expect(read(unanswered, READS).count).toBe(1);
    expect(read(unanswered, READS + 1)).toEqual({ ...NO_APPENDS, highest: BigInt(READS) });
  });

  test('begins anew when the answer to a further append is lost', () => {
    const again = lost(sent(read(unanswered, READS), undefined));
    expect(again).toMatchObject({ searched: 0, readAt: undefined });
    expect(read(again, READS).count).toBe(2);
    expect(read(again, READS + 1).count).toBe(0);
  });

  test('does not count a pause between two reads, such as an outage or a hold', () => {
    expect(read(unanswered, 3, SEARCH_APPEND_FOR)).toMatchObject({ count: 1, searched: 2 * READ_EVERY * 1000 });
  });

  test('of two tickets is as long as that of which less is known', () => {
    const both = joined(read(unanswered, READS), read(unanswered, 3));
    expect(both.searched).toBe(2 * READ_EVERY * 1000);
    expect(joined(read(unanswered, 3), read(unanswered, READS)).searched).toBe(both.searched);
    expect(read(both, READS - 2, READ_EVERY, 3 * READ_EVERY).count).toBe(0);
  });

  test('that is inherited continues', () => {
    const search = read(unanswered, 3);
    expect(joined(NO_APPENDS, search)).toEqual(search);
  });
});
