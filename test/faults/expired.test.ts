import { expect, test } from 'vitest';
import { leftAfter } from './expired.ts';

const SECONDS = 0.5;

/** A member whose term is the one of the last entry that has begun. Reads show what is left until `gone` milliseconds have passed. */
function useMember({ terms, gone }: { readonly terms: readonly number[]; readonly gone: number }) {
  const begun = performance.now();
  const passed = () => performance.now() - begun;
  return {
    passed,
    term: async () => BigInt(terms.filter((from) => from <= passed()).length),
    read: async () => (passed() < gone ? ['lease'] : []),
  };
}

test('what is left at the end of its TTL is returned', async () => {
  const member = useMember({ terms: [0], gone: Number.POSITIVE_INFINITY });
  expect(await leftAfter(SECONDS, async () => member)).toEqual(['lease']);
  expect(member.passed()).toBeGreaterThanOrEqual(SECONDS * 1000);
});

test('nothing is left if it ends within its TTL after the last of several elections', async () => {
  const member = useMember({ terms: [0, 300, 600], gone: 1000 });
  expect(await leftAfter(SECONDS, async () => member)).toEqual([]);
});

test('a read that fails does not end the wait, and another member is read', async () => {
  const failing = {
    term: async () => 1n,
    read: () => Promise.reject(new Error('reset')),
  };
  const member = useMember({ terms: [0], gone: 300 });
  const members = [failing, failing, member];
  expect(await leftAfter(SECONDS, async () => members.shift() ?? member)).toEqual([]);
});
