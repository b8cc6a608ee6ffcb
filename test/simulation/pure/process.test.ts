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

test('a stopped process continues with its timers first, then with what has arrived', async () => {
  const scheduler = new Scheduler();
  const process = new Process('p', scheduler, 'seed');
  const seen: string[] = [];
  process.after(20, () => seen.push(`timer at ${scheduler.now}`));
  scheduler.after(5, () => process.stop());
  scheduler.after(10, () => process.receive(() => seen.push('arrived')));
  scheduler.after(50, () => process.continue());
  await scheduler.run(1000, never);
  expect(seen).toEqual(['timer at 50', 'arrived']);
  expect(process.stoppedFor).toBe(45);
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
