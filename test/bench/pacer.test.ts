import { expect, test } from 'vitest';
import { Pacer } from '../../bench/setting/pacer.mjs';
import { until } from '../support/until.ts';

test('what is passed comes out in order and none of it too soon', async () => {
  const pacer = new Pacer(5);
  const out: { readonly place: number; readonly after: number }[] = [];
  for (let place = 0; place < 100; place += 1) {
    const given = performance.now();
    pacer.pass(() => out.push({ place, after: performance.now() - given }));
  }
  expect(out).toEqual([]);
  await until(
    () => out.length,
    (length) => length === 100,
  );
  expect(out.map(({ place }) => place)).toEqual(Array.from({ length: 100 }, (_, place) => place));
  expect(Math.min(...out.map(({ after }) => after))).toBeGreaterThanOrEqual(5);
});

test('without a delay it happens at once', () => {
  const out: number[] = [];
  new Pacer(0).pass(() => out.push(1));
  expect(out).toEqual([1]);
});
