import { expect, onTestFinished, test } from 'vitest';
import { startEtcd } from '../../support/etcd.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { expectOncePerTick, runOnHosts } from '../../support/once-hosts.ts';
import { until } from '../../support/until.ts';

const TICKS = 100;
const AHEAD = [0, 20, -20, 7, -13];

test(`${TICKS} ticks on five hosts, whose clocks differ and which are killed: each runs at most once, and only the marker is left`, async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const { url } = etcd;
  const runs = await runOnHosts({
    etcd: url,
    api: 'v3',
    name: 'report',
    ticks: TICKS,
    ahead: AHEAD,
    kills: 8,
    least: TICKS / 2,
  });
  const { unfinished } = expectOncePerTick(runs);
  expect(unfinished).toBeGreaterThan(0);
  expect(runs.length).toBeGreaterThanOrEqual(TICKS / 2);
  expect(runs.some(({ previous }) => previous?.state === 'ran')).toBe(true);
  const leases = async () => (await gateway('/lease/leases', {}, url)).leases ?? [];
  // Those of killed hosts expire.
  const [lease] = await until(leases, ({ length }) => length <= 1);
  expect(await entriesBelow('/', url)).toMatchObject([{ key: '/_locks_ticks:report' }]);
  await gateway('/lease/revoke', { ID: lease?.ID }, url);
  const { kvs } = await gateway('/kv/range', { key: base64('/_locks_ticks:report') }, url);
  expect(kvs).toBeUndefined();
}, 300_000);
