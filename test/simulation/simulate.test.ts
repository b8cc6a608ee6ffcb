import { expect, test } from 'vitest';
import { simulate } from './simulate.ts';

test('the same seed makes the same world, byte for byte, whatever the process has run before', async () => {
  const [alone, after] = await Promise.all([
    simulate('--worlds', '1', '--seed', '9', '--trace'),
    simulate('--worlds', '3', '--seed', '7', '--trace'),
  ]);
  const start = alone.stdout.indexOf('{');
  const timeline = alone.stdout.slice(start, alone.stdout.indexOf('the storm is over'));
  expect(timeline.length).toBeGreaterThan(1000);
  expect(after.stdout).toContain(timeline);
});

test.each([
  ['--api', 'v4'],
  ['--scenario', 'sunshine'],
  ['--worlds', 'many'],
])('%s %s is refused with what is possible', async (...args) => {
  const { code, stdout, stderr } = await simulate(...args);
  expect(code).toBe(2);
  expect(stdout + stderr).toContain(args[1]);
});
