import { expect, test } from 'vitest';
import { Scheduler } from '../virtual/scheduler.ts';

const never = (): boolean => false;

test('steps run in the order of their times, and in that of their requests at the same time', async () => {
  const scheduler = new Scheduler();
  const seen: string[] = [];
  const step = (name: string, ms: number) => scheduler.after(ms, () => seen.push(`${name} at ${scheduler.now}`));
  step('late', 30);
  step('first', 10);
  step('second', 10);
  step('at once', 0);
  await scheduler.run(100, never);
  expect(seen).toEqual(['at once at 0', 'first at 10', 'second at 10', 'late at 30']);
});

test('a step that was canceled does not run', async () => {
  const scheduler = new Scheduler();
  const seen: number[] = [];
  const cancel = scheduler.after(5, () => seen.push(5));
  scheduler.after(1, cancel);
  scheduler.after(9, () => seen.push(9));
  await scheduler.run(100, never);
  expect(seen).toEqual([9]);
});

test('a step runs after everything that the step before it has caused', async () => {
  const scheduler = new Scheduler();
  const seen: string[] = [];
  scheduler.after(1, () => {
    void Promise.resolve()
      .then(() => new Promise((resolve) => process.nextTick(resolve)))
      .then(() => seen.push('caused'));
  });
  scheduler.after(1, () => seen.push('next'));
  await scheduler.run(100, never);
  expect(seen).toEqual(['caused', 'next']);
});

test('a run ends at its end, and the next one continues there', async () => {
  const scheduler = new Scheduler();
  const seen: number[] = [];
  for (const at of [1, 2, 3]) scheduler.after(at, () => seen.push(at));
  await scheduler.run(2, never);
  expect(seen).toEqual([1, 2]);
  await scheduler.run(9, () => seen.length === 3);
  expect(seen).toEqual([1, 2, 3]);
});
