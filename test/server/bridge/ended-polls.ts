import { expect } from 'vitest';
import type { BridgeOptions } from '../../../src/server/bridge/bridge.ts';
import type { BridgeRecord } from '../../../src/server/bridge/records.ts';
import { freshName } from '../../support/locks.ts';
import { poll, RawConnection } from '../../support/raw-connection.ts';
import { until } from '../../support/until.ts';
import { metricsOf } from './pages.ts';
import { useBridge, useKeys } from './use-bridge.ts';

/** Expects that neither the metrics nor the log of a bridge show an error for polls that their client ends. */
export async function expectEndedPollsAreNoErrors(options: BridgeOptions = {}): Promise<void> {
  const records: BridgeRecord[] = [];
  const bridge = await useBridge({ ...options, metrics: true, log: (record) => records.push(record) });
  const dir = `/_locks/${freshName()}`;
  const { node } = await useKeys(bridge).createInOrder(dir, 'v', { ttl: 60 });
  for (const key of [dir, node.key]) {
    const client = await RawConnection.open(bridge.url);
    client.send(poll(key));
    await client.begun(1);
    client.hangUp();
  }
  const polls = await until(
    () => records.filter(({ path, method }) => method === 'GET' && path?.startsWith('/v2/keys')),
    ({ length }) => length === 2,
  );
  for (const record of polls) expect(record).not.toHaveProperty('error');
  expect(Object.keys(await metricsOf(bridge)).filter((name) => name.startsWith('errors'))).toEqual([]);
}
