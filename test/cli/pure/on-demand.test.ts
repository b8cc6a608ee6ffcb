import { expect, test } from 'vitest';
import { OnDemand } from '../../../src/cli/ui/on-demand.ts';

/** Work whose runs end when the test says so. */
function useWork(freshFor: number) {
  const ends: { resolve: (text: string) => void; reject: (error: Error) => void }[] = [];
  const work = new OnDemand(() => new Promise<string>((resolve, reject) => ends.push({ resolve, reject })), freshFor);
  return { work, ends };
}

test('all who ask during a run get its result, and those who ask soon after it, too', async () => {
  const { work, ends } = useWork(60_000);
  const asked = [work.get(), work.get(), work.get()];
  ends[0]?.resolve('first');
  expect(await Promise.all(asked)).toEqual(['first', 'first', 'first']);
  expect(await work.get()).toBe('first');
  expect(ends).toHaveLength(1);
});

test('a result that is no longer fresh is replaced by a new run', async () => {
  const { work, ends } = useWork(0);
  const first = work.get();
  ends[0]?.resolve('first');
  expect(await first).toBe('first');
  const second = work.get();
  ends[1]?.resolve('second');
  expect(await second).toBe('second');
});

test('a failure is given to all who ask, and then there is a new run', async () => {
  const { work, ends } = useWork(0);
  const asked = [work.get(), work.get()];
  ends[0]?.reject(new Error('no etcd'));
  for (const each of asked) await expect(each).rejects.toThrow('no etcd');
  const next = work.get();
  ends[1]?.resolve('second');
  expect(await next).toBe('second');
  const { work: other, ends: otherEnds } = useWork(60_000);
  const failed = other.get();
  otherEnds[0]?.reject(new Error('no etcd'));
  await expect(failed).rejects.toThrow('no etcd');
  await expect(other.get()).rejects.toThrow('no etcd');
  expect(otherEnds).toHaveLength(1);
});
