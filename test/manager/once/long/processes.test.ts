import { expect, inject, test } from 'vitest';
import { escaped, freshName, queueOn, raw } from '../../../support/locks.ts';
import { expectOncePerTick, runOnHosts } from '../../../support/once-hosts.ts';
import { until } from '../../../support/until.ts';

const TICKS = 100;

test(`${TICKS} ticks on five hosts, whose clocks differ and which are killed: each runs at most once`, async () => {
  const name = freshName();
  const etcd = inject('etcd');
  const ahead = [0, 20, -20, 7, -13];
  const runs = await runOnHosts({ etcd, api: 'v2', name, ticks: TICKS, ahead, kills: 8, least: TICKS / 2 });
  const { unfinished } = expectOncePerTick(runs);
  expect(unfinished).toBeGreaterThan(0);
  expect(runs.length).toBeGreaterThanOrEqual(TICKS / 2);
  expect(runs.some(({ previous }) => previous?.state === 'ran')).toBe(true);
  await until(
    () => queueOn(name),
    ({ length }) => length === 0,
  );
  const marker = escaped(`/_locks_ticks:${name}`);
  expect((await raw('GET', marker)).body.node).toMatchObject({ value: expect.stringMatching(/ (?:ran|begun) /) });
  await raw('DELETE', marker);
}, 300_000);
