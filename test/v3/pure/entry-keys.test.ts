import { expect, test } from 'vitest';
import { EntryKeys, SINGLE_USE_KEYS } from '../../../src/v3/locks/entry-keys.ts';
import { idOf } from '../../../src/v3/rpc/keys.ts';

const PATH = '/_locks/job';

/** Keys of a client that has created all keys of the queue that serve once. */
function keysAfterTheFirst(path = PATH): EntryKeys {
  const keys = new EntryKeys();
  for (let i = 0; i < SINGLE_USE_KEYS; i += 1) keys.take(path, `value-${i}`);
  return keys;
}

test('the first keys of a queue are those of their values, and are not used again', () => {
  const keys = new EntryKeys();
  const values = Array.from({ length: SINGLE_USE_KEYS }, (_, i) => `value-${i}`);
  expect(values.map((value) => keys.take(PATH, value))).toEqual(
    values.map((value) => ({ key: `${PATH}/${idOf(value)}`, isUsedAgain: false })),
  );
});

test('later keys belong to no value, and are used again once they are free', () => {
  const keys = keysAfterTheFirst();
  const first = keys.take(PATH, 'value');
  expect(first).toEqual({ key: expect.stringMatching(/^\/_locks\/job\/[0-9a-f]{32}$/), isUsedAgain: true });
  expect(first.key).not.toBe(`${PATH}/${idOf('value')}`);
  keys.release(PATH, first);
  expect(keys.take(PATH, 'other')).toBe(first);
});

test('entries at the same time have different keys', () => {
  const keys = keysAfterTheFirst();
  const taken = Array.from({ length: 64 }, () => keys.take(PATH, 'value'));
  expect(new Set(taken.map(({ key }) => key)).size).toBe(64);
  for (const key of taken) keys.release(PATH, key);
  const again = Array.from({ length: 64 }, () => keys.take(PATH, 'value'));
  expect(new Set(again)).toEqual(new Set(taken));
});

test('a key serves only its own queue', () => {
  const keys = keysAfterTheFirst();
  const key = keys.take(PATH, 'value');
  keys.release(PATH, key);
  expect(keys.take(`${PATH}/nested`, 'value')).toEqual({
    key: `${PATH}/nested/${idOf('value')}`,
    isUsedAgain: false,
  });
});

test('at most 100 free keys of a queue are remembered', () => {
  const keys = keysAfterTheFirst();
  const taken = new Set(Array.from({ length: 101 }, () => keys.take(PATH, 'value')));
  for (const key of taken) keys.release(PATH, key);
  const again = Array.from({ length: 101 }, () => keys.take(PATH, 'value'));
  expect(again.filter((key) => taken.has(key))).toHaveLength(100);
});

test('the keys of the 1,000 queues that were used last are remembered', () => {
  const keys = keysAfterTheFirst();
  const key = keys.take(PATH, 'value');
  keys.release(PATH, key);
  const useOthers = (count: number): void => {
    for (let i = 0; i < count; i += 1) keys.take(`/_locks/other-${i}`, 'value');
  };
  useOthers(999);
  expect(keys.take(PATH, 'value')).toBe(key);
  keys.release(PATH, key);
  useOthers(1000);
  expect(keys.take(PATH, 'value').isUsedAgain).toBe(false);
});

test('a key that becomes free after its queue was forgotten is forgotten, too', () => {
  const keys = keysAfterTheFirst();
  const key = keys.take(PATH, 'value');
  for (let i = 0; i < 1000; i += 1) keys.take(`/_locks/other-${i}`, 'value');
  keys.release(PATH, key);
  expect(keys.take(PATH, 'value').isUsedAgain).toBe(false);
});
