import { expect, test } from 'vitest';
import { rehearse } from './rehearsal.ts';

test('python-etcd and Node move from v2 to v3, one at a time and while all work and members fail, and never hold together', async () => {
  const { overlaps, crashes, left } = await rehearse({
    steps: ['v2', 'both', 'v3'],
    crew: ['python', 'manager', 'python', 'lock'],
    seed: 2,
  });
  expect(overlaps).toEqual([]);
  expect(crashes).toEqual([]);
  expect(left).toEqual([]);
}, 600_000);

test('without the step in between they hold together: the check sees that', async () => {
  const { overlaps } = await rehearse({ steps: ['v2', 'v3'], crew: ['python', 'manager', 'python', 'lock'] });
  expect(overlaps).not.toEqual([]);
});
