import { expect, test } from 'vitest';
import { Tokens } from '../../../../src/server/v3/auth/tokens.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const FIVE_MINUTES = 300_000;

function fresh() {
  const clock = new ManualClock();
  return { clock, tokens: new Tokens(clock) };
}

test('a token contains the revision at which it was made, as in etcd', () => {
  expect(fresh().tokens.assign('alice', 42n)).toMatch(/^[A-Za-z]{16}\.42$/);
});

test('a token expires five minutes after its last use', () => {
  const { clock, tokens } = fresh();
  const token = tokens.assign('alice', 1n);
  for (let i = 0; i < 3; i += 1) {
    clock.advance(FIVE_MINUTES - 1);
    expect(tokens.use(token)).toBe('alice');
  }
  clock.advance(FIVE_MINUTES);
  expect(tokens.use(token)).toBeUndefined();
  expect(tokens.use(token)).toBeUndefined();
});

test('the tokens of a user become invalid without those of others', () => {
  const { tokens } = fresh();
  const [first, second, other] = [tokens.assign('a', 1n), tokens.assign('a', 1n), tokens.assign('b', 1n)];
  tokens.revoke('a');
  expect([first, second, other].map((token) => tokens.use(token))).toEqual([undefined, undefined, 'b']);
  tokens.revoke();
  expect(tokens.use(other)).toBeUndefined();
});

test('at most 10,000 tokens are kept: the one that was used longest ago is given up', () => {
  const { tokens } = fresh();
  const first = tokens.assign('first', 1n);
  const second = tokens.assign('second', 1n);
  for (let i = 2; i < 10_000; i += 1) tokens.assign('other', 1n);
  expect(tokens.use(first)).toBe('first');
  tokens.assign('one more', 1n);
  expect(tokens.use(first)).toBe('first');
  expect(tokens.use(second)).toBeUndefined();
});
