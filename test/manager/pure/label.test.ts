import { expect, test } from 'vitest';
import { checkLabel, labelOf } from '../../../src/manager/label.ts';

test.each([
  ['web-1', 4711, 'web-1:4711'],
  ['', 1, ':1'],
  ['x'.repeat(255), 4_294_967_295, `${'x'.repeat(84)}:4294967295`],
  [`x${'ü'.repeat(60)}`, 1, `x${'ü'.repeat(41)}:1`],
])('the label of the process on host %j with the id %j is one that can be stored', (host, pid, label) => {
  expect(labelOf(host, pid)).toBe(label);
  expect(checkLabel(label)).toBe(label);
});
