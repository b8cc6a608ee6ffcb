import { expect, test } from 'vitest';
import { Pacer } from '../../../bench/setting/pacer.mjs';
import { until } from '../../support/until.ts';

test('pass() runs the actions in order, none before its delay', async () => {
  const pacer = new Pacer(5);
  const out: { readonly index: number; readonly after: number }[] = [];
  for (let index = 0; index < 100; index += 1) {
    const given = performance.now();
    pacer.pass(() => out.push({ index, after: performance.now() - given }));
  }
  expect(out).toEqual([]);
  await until(
    () => out.length,
    (length) => length === 100,
  );
  expect(out.map(({ index }) => index)).toEqual(Array.from({ length: 100 }, (_, index) => index));
  expect(Math.min(...out.map(({ after }) => after))).toBeGreaterThanOrEqual(5);
});

test('without a delay, pass() runs the action at once', () => {
  const out: number[] = [];
  new Pacer(0).pass(() => out.push(1));
  expect(out).toEqual([1]);
});
