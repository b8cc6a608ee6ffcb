import { expect, test } from 'vitest';
import { Scope } from '../../../src/base/cancellation.ts';
import { Deadline } from '../../../src/base/time.ts';
import { Attempt } from '../../../src/recipe/attempt.ts';
import type { Entry, LockStore } from '../../../src/recipe/store.ts';
import { gate } from '../../support/gate.ts';

const path = '/_locks/job';
const entry = (key: string, rank: bigint): Entry => ({ key: `${path}/${key}`, value: key, rank, ttl: undefined });
const [holder, own] = [entry('holder', 1n), entry('own', 2n)];

function useAttempt({ blocking = true } = {}): Attempt {
  const store = { pending: { closing: new Scope() } } as Partial<LockStore> as LockStore;
  return new Attempt(store, path, { blocking, timeout: 0, signal: undefined, deadline: Deadline.never });
}

/** Lets the attempt learn the entry that a function reads. */
async function see(attempt: Attempt, read: () => Promise<Entry | undefined>): Promise<void> {
  attempt.saw(read, own.key);
  await new Promise(setImmediate);
}

test('the holder of a lock is known after the first read, if its TTL must be read first', async () => {
  const attempt = useAttempt();
  await see(attempt, async () => holder);
  expect(attempt.holder?.key).toBe(holder.key);
});

test('the own entry is not the holder, also if it has become the first before it was read', async () => {
  const attempt = useAttempt();
  await see(attempt, async () => own);
  expect(attempt.holder).toBeUndefined();
});

test('the last known holder is kept if it cannot be read', async () => {
  const attempt = useAttempt();
  attempt.saw(holder, own.key);
  await see(attempt, () => Promise.reject(new Error('etcd is down')));
  expect(attempt.holder?.key).toBe(holder.key);
});

test('a holder that was read late does not replace a newer one', async () => {
  const attempt = useAttempt();
  const read = gate();
  attempt.saw(() => read.opened.then(() => entry('earlier', 0n)), own.key);
  attempt.saw(holder, own.key);
  read.open();
  await new Promise(setImmediate);
  expect(attempt.holder?.key).toBe(holder.key);
});

test('an attempt that must not wait does not read the holder', () => {
  useAttempt({ blocking: false }).saw(() => expect.unreachable(), own.key);
});
