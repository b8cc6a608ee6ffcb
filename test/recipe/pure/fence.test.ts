import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EtcdStaleToken, Fence } from '../../../src/index.ts';
import { rejection } from '../../support/clients.ts';

const tokens = fc.array(fc.bigInt({ min: 0n, max: 30n }), { minLength: 1, maxLength: 50 });

describe('a fence', () => {
  test('accepts a token if and only if no earlier token was higher', async () => {
    await fc.assert(
      fc.asyncProperty(tokens, async (all) => {
        const fence = new Fence();
        for (const [i, token] of all.entries()) {
          const before = all.slice(0, i);
          const passes = before.every((earlier) => earlier <= token);
          const outcome = await fence.accept('row', token).then(
            () => 'passed',
            (error: unknown) => error,
          );
          if (passes) expect(outcome).toBe('passed');
          else expect(outcome).toMatchObject({ token, highest: before.reduce((x, y) => (x > y ? x : y)) });
        }
      }),
    );
  });

  test('refuses a token lower than an earlier one, and the error names both', async () => {
    const fence = new Fence();
    await fence.accept('row', 20n);
    const error = await rejection(fence.accept('row', 19n), EtcdStaleToken);
    expect(error).toMatchObject({ code: 'ETCD_STALE_TOKEN', token: 19n, highest: 20n });
    expect(error.message).toBe('row has already accepted token 20, got the lower token 19');
  });

  test('accepts repeated writes of the same holder', async () => {
    const fence = new Fence();
    for (const _ of [1, 2, 3]) await fence.accept('row', 7n);
    await expect(fence.accept('row', 6n)).rejects.toThrow(EtcdStaleToken);
  });

  test('keeps the tokens of different resources apart, and those of different fences', async () => {
    const fence = new Fence();
    await fence.accept('row', 9n);
    await fence.accept('other', 1n);
    await new Fence().accept('row', 1n);
  });

  test('distinguishes tokens beyond the safe integers', async () => {
    const fence = new Fence();
    const high = 2n ** 63n;
    await fence.accept('row', high);
    await expect(fence.accept('row', high - 1n)).rejects.toThrow(EtcdStaleToken);
    await fence.accept('row', high + 1n);
  });

  test.each([5, '5', undefined, null])(
    'refuses a token that is not a bigint, and stores nothing: %j',
    async (token) => {
      const raised: unknown[] = [];
      const fence = new Fence((_, raise) => {
        raised.push(raise);
        return raise;
      });
      const error = await rejection(fence.accept('row', token as unknown as bigint), TypeError);
      expect(error.message).toContain(`got ${typeof token === 'string' ? '"5"' : token}`);
      expect(raised).toEqual([]);
    },
  );
});

describe('a fence with a custom `raise`', () => {
  test('calls `raise` once for each write, with the resource and the token', async () => {
    const asked: [string, bigint][] = [];
    const fence = new Fence((resource, token) => {
      asked.push([resource, token]);
      return token;
    });
    await fence.accept('row', 3n);
    await fence.accept('other', 2n);
    expect(asked).toEqual([
      ['row', 3n],
      ['other', 2n],
    ]);
  });

  test.each([5, '5', undefined, null])('refuses a result that is not a bigint: %j', async (answer) => {
    const fence = new Fence(async () => answer as unknown as bigint);
    const error = await rejection(fence.accept('row', 6n), TypeError);
    expect(error.message).toContain(
      `raise must resolve to a bigint, got ${typeof answer === 'string' ? '"5"' : answer}`,
    );
  });

  test.each([
    ['synchronous', () => 5n],
    ['asynchronous', async () => 5n],
  ])('compares the token with the result of a %s `raise`', async (_, raise) => {
    const fence = new Fence(raise);
    await fence.accept('row', 5n);
    expect(await rejection(fence.accept('row', 4n), EtcdStaleToken)).toMatchObject({ token: 4n, highest: 5n });
  });

  test.each([
    ['rejects', () => Promise.reject(new Error('no disk'))],
    [
      'throws',
      () => {
        throw new Error('no disk');
      },
    ],
  ])('accepts nothing if `raise` %s', async (_, raise) => {
    await expect(new Fence(raise).accept('row', 5n)).rejects.toThrow('no disk');
  });

  test.each([null, 5, 'text', {}])('refuses a `raise` that is not a function: %j', (raise) => {
    expect(() => new Fence(raise as never)).toThrow(TypeError);
    expect(() => new Fence(raise as never)).toThrow(`raise must be a function, got`);
  });
});
