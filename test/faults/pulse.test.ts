import { expect, onTestFinished, test } from 'vitest';
import { elapsed, moment, now } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';
import { startFaultCluster } from './fault-cluster.ts';
import { gapsIn, OUTAGE, startPulse } from './pulse.ts';
import { STORE } from './stores/tested.ts';

test('a gap lasts from the start of the last read that was answered before it to the next answer', () => {
  const answered = [
    { from: 0, to: 10 },
    { from: 200, to: 210 },
    { from: 400, to: 2000 },
    { from: 1900, to: 2001 },
    { from: 2100, to: 2110 },
  ];
  expect(gapsIn(answered, 700)).toEqual([{ from: 200, to: 2001 }]);
  expect(gapsIn(answered.toReversed(), 700)).toEqual([{ from: 200, to: 2001 }]);
  expect(gapsIn(answered, 1900)).toEqual([]);
});

test('a cluster without a quorum has an outage, and a cluster with two of three members has none', async () => {
  // No election: it would be an outage.
  const cluster = await startFaultCluster({ steady: true });
  onTestFinished(() => cluster.stop());
  const pulse = startPulse(cluster.urls, STORE);
  onTestFinished(() => pulse.stop());
  const [one, two] = await cluster.followers();
  await one?.etcd.pause();
  const paused = moment();
  // Longer than the shortest outage that counts.
  await until(now, (time) => time > paused.at + 1500);
  const end = moment();
  const stalled = end.at - paused.at - elapsed(paused, end);
  const outages = pulse.outages().filter(({ from, to }) => to > paused.at && to - from > OUTAGE + stalled);
  expect(outages).toEqual([]);
  await two?.etcd.pause();
  const begin = now();
  const [outage] = await until(
    () => pulse.outages().filter(({ to }) => to > begin),
    (outages) => outages.length > 0,
  );
  expect(outage?.from).toBeLessThan(begin + 500);
  two?.etcd.resume();
  await cluster.leader();
  const [whole, ...more] = await until(
    () => pulse.outages().filter(({ to }) => to > begin),
    ([last]) => last !== undefined && last.to < now() - 500,
  );
  expect(more).toEqual([]);
  expect(whole?.from).toBe(outage?.from);
});
