import { expect, onTestFinished, test } from 'vitest';
import type { Bridge } from '../../../src/server/bridge/bridge.ts';
import { startEtcd } from '../../support/etcd.ts';
import { base64, gateway } from '../../support/gateway.ts';
import { freshName } from '../../support/locks.ts';
import { until } from '../../support/until.ts';
import { health } from './pages.ts';
import { useBridge, useKeys } from './use-bridge.ts';

/** Waits until the bridge is healthy: on a slow machine, etcd may take longer for one check. */
const untilHealthy = (bridge: Bridge) =>
  until(
    () => health(bridge),
    ([status, body]) => status === 200 && body === '{"health":"true"}',
  );

test('health is that of etcd if its database is full, and reads, renewals and removals are served', async () => {
  const etcd = await startEtcd({ args: ['--quota-backend-bytes=300000'] });
  onTestFinished(() => etcd.stop());
  const bridge = await useBridge({ endpoints: etcd.url });
  const keys = useKeys(bridge);
  const { node } = await keys.createInOrder(`/_locks/${freshName()}`, 'x', { ttl: 60 });
  await untilHealthy(bridge);
  const big = base64('x'.repeat(40_000));
  await until(
    () => gateway('/kv/put', { key: base64('big'), value: big }, etcd.url),
    (answer) => (answer as { code?: number }).code === 8,
  );
  const ofEtcd = await fetch(`${etcd.url}/health`);
  expect(await health(bridge)).toEqual([ofEtcd.status, (await ofEtcd.text()).trim()]);
  expect(await health(bridge)).toEqual([503, '{"health":"false"}']);
  expect((await keys.get(node.key)).node.value).toBe('x');
  await keys.set(node.key, undefined, { ttl: 60, refresh: true, prevExist: true });
  await keys.delete(node.key);
  const raised = await gateway('/maintenance/alarm', { action: 'GET' }, etcd.url);
  const [alarm] = (raised as unknown as { alarms: object[] }).alarms;
  await gateway('/maintenance/alarm', { ...alarm, action: 'DEACTIVATE' }, etcd.url);
  await untilHealthy(bridge);
});
