import { expect, test } from 'vitest';
import { rehearse } from './rehearsal.ts';

test('4 python-etcd and 4 Node move forward, back and forward again, one at a time and while members and bridges fail, and never hold together', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const { overlaps, crashes, left } = await rehearse({
    steps: ['v2', 'both', 'v3', 'both', 'v2', 'both', 'v3'],
    crew: ['python', 'manager', 'python', 'lock', 'python', 'manager', 'python', 'lock'],
    seed,
  });
  expect({ seed, overlaps, crashes, left }).toEqual({ seed, overlaps: [], crashes: [], left: [] });
}, 1_200_000);
