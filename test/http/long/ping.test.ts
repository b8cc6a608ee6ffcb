import { expect, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../../src/index.ts';
import { startCluster } from '../../support/etcd.ts';
import { until } from '../../support/until.ts';

test('members without a majority are not healthy, on either API, and are healthy again with it', async () => {
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  await cluster.leader();
  const client = new EtcdClient({ endpoints: cluster.urls, api: 'both' });
  onTestFinished(() => client.close({ timeout: 0 }));
  const healthy = async (): Promise<string[]> =>
    (await client.ping({ timeout: 1 })).filter(({ ok }) => ok).map(({ url, api }) => `${api} ${url}`);
  const all = (await client.ping()).map(({ url, api }) => `${api} ${url}`);
  expect(all).toHaveLength(6);
  expect(await healthy()).toEqual(all);

  const [first, ...others] = cluster.members;
  await first?.pause();
  const rest = all.filter((one) => !one.endsWith(` ${first?.url}`));
  // Without a majority, the last member notices it after an election timeout.
  expect(await until(healthy, (found) => found.length > 0)).toEqual(rest);
  await others[0]?.pause();
  expect(await until(healthy, (found) => found.length === 0)).toEqual([]);
  first?.resume();
  others[0]?.resume();
  expect(await until(healthy, (found) => found.length === all.length)).toEqual(all);
});
