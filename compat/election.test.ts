import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { next, untilFinished } from '../test/support/iterators.ts';
import { freshName, queueOn, untilQueued } from '../test/support/locks.ts';
import { useManager } from '../test/support/managers.ts';
import { type Python, startPython } from './python.ts';

let python: Python;

beforeAll(async () => {
  python = await startPython(inject('etcd'));
});

afterAll(() => python.stop());

test('python-etcd’s Lock takes turns with a candidate, and is a leader without a value', async () => {
  const name = freshName();
  const election = useManager().elect(name, { value: 'http://node@1:80/%' });
  const leaders = useManager().elect(name).observe({ signal: untilFinished() });
  expect(await next(leaders)).toBeUndefined();
  const theirs = await python.lock(name);
  await theirs.acquire({ lockTtl: 60 });
  const { uuid, lockKey: key } = await theirs.state();
  expect(await next(leaders)).toMatchObject({ key, uuid, label: undefined, value: undefined, own: false });
  const campaign = election.campaign();
  const elected = next(campaign);
  await untilQueued(name, 2);
  await theirs.release();
  const term = await elected;
  expect(await next(leaders)).toMatchObject({ key: term.key, value: 'http://node@1:80/%' });
  const waiting = theirs.acquire({ lockTtl: 60 });
  await untilQueued(name, 2);
  await term.resign();
  expect(await waiting).toBe(true);
  expect(await next(leaders)).toMatchObject({ uuid, value: undefined });
  await theirs.release();
  await campaign.return();
  expect(await next(leaders)).toBeUndefined();
  expect(await queueOn(name)).toEqual([]);
});
