import { expect, test } from 'vitest';
import { EtcdLockLimitDiffers } from '../../../src/errors.ts';
import { checkLimits } from '../../../src/recipe/entries/limits.ts';
import type { Entry } from '../../../src/recipe/store.ts';

const path = '/_locks/job';
const queueOf = (...limits: readonly (number | undefined)[]): Entry[] =>
  limits.map((limit, at) => ({
    key: `${path}/${at}`,
    value: `${limit === undefined ? '' : `limit:${limit}:`}${String(at).padStart(32, '0')}`,
    rank: BigInt(at),
    ttl: undefined,
  }));

test.each([
  ['has no other limit', [undefined, 3, 3]],
  ['begins with the same limit: a later one with another limit will be refused itself', [3, 5, 3]],
  ['has no limit at all', [undefined, undefined]],
])('a request may enter a queue that %s', (_, limits) => {
  expect(() => checkLimits(path, queueOf(...limits).reverse(), 3)).not.toThrow();
});

test.each([[[5, 3]], [[undefined, 5, 3, 3]]])('a request is refused whose limit is not the first one: %j', (limits) => {
  expect(() => checkLimits(path, queueOf(...limits).reverse(), 3)).toThrow(EtcdLockLimitDiffers);
});
