import { expect, test } from 'vitest';
import { currentProcess, Process } from '../virtual/process.ts';
import { Scheduler } from '../virtual/scheduler.ts';

const never = (): boolean => false;

test('a process has a clock of its own, and its timers follow it', async () => {
  const scheduler = new Scheduler();
  const fast = new Process('fast', scheduler, 'seed', { rate: 2, wall: 1000 });
  const seen: number[][] = [];
  fast.after(100, () => seen.push([scheduler.now, fast.now(), fast.wall()]));
  await scheduler.run(1000, never);
  expect(seen).toEqual([[50, 100, 1100]]);
});

test.each(['timers', 'others'] as const)('a stopped process continues with its %s first', async (first) => {
  const scheduler = new Scheduler();
  const process = new Process('p', scheduler, 'seed');
  const seen: string[] = [];
  process.after(20, () => seen.push(`timer at ${scheduler.now}`));
  scheduler.after(5, () => process.stop());
  scheduler.after(10, () => process.receive(() => seen.push('arrived')));
  scheduler.after(50, () => process.continue(first));
  await scheduler.run(1000, never);
  expect(seen.at(0)).toBe(first === 'timers' ? 'timer at 50' : 'arrived');
  expect(seen).toHaveLength(2);
  expect(process.stoppedFor).toBe(45);
});

test('what a process has begun before it was stopped may be out of date until it has noticed the time', async () => {
  const scheduler = new Scheduler();
  const process = new Process('p', scheduler, 'seed');
  const seen: boolean[] = [];
  scheduler.after(5, () => process.stop());
  scheduler.after(50, () => {
    seen.push(process.isBehindSince(1));
    process.continue();
    seen.push(process.isBehindSince(1), process.isBehindSince(50));
  });
  scheduler.after(51, () => seen.push(process.isBehindSince(1)));
  await scheduler.run(1000, never);
  expect(seen).toEqual([true, true, false, false]);
});

test('a killed process does nothing more', async () => {
  const scheduler = new Scheduler();
  const process = new Process('p', scheduler, 'seed');
  const seen: string[] = [];
  process.after(20, () => seen.push('timer'));
  scheduler.after(5, () => process.kill());
  scheduler.after(10, () => process.receive(() => seen.push('arrived')));
  await scheduler.run(1000, never);
  expect(seen).toEqual([]);
});

test('a step and its microtasks belong to their process', async () => {
  const scheduler = new Scheduler();
  const [one, other] = ['one', 'other'].map((name) => new Process(name, scheduler, 'seed'));
  const seen: string[] = [];
  for (const process of [one, other])
    process?.after(1, () => void Promise.resolve().then(() => seen.push(currentProcess().name)));
  await scheduler.run(1000, never);
  expect(seen).toEqual(['one', 'other']);
});

test('a process draws the same numbers for the same seed and name', () => {
  const draw = (name: string, seed: string) => new Process(name, new Scheduler(), seed).random.bytes(8).toString('hex');
  expect(draw('one', '1')).toBe(draw('one', '1'));
  expect(draw('other', '1')).not.toBe(draw('one', '1'));
  expect(draw('one', '2')).not.toBe(draw('one', '1'));
});
