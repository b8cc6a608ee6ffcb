import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { base64, entriesBelow, gateway } from '../support/gateway.ts';
import { freshName } from '../support/locks.ts';
import { until } from '../support/until.ts';

const TTL = 3;

function useLocks(): LockManager {
  const client = new V3Client({ endpoints: inject('etcd') });
  onTestFinished(() => client.close());
  return new LockManager(client, { ttl: TTL });
}

/** Acts as a proxy that carries out the append of an entry once more, after its removal: with the lease of another entry of the client. */
async function appendLate(key: string, value: string, withLeaseOf: string): Promise<void> {
  const { kvs } = await gateway('/kv/range', { key: base64(withLeaseOf) });
  const lease = kvs?.[0]?.lease;
  await gateway('/kv/put', { key: base64(key), value: base64(value), lease });
}

test('a client removes an entry that a late copy of its append has created', async () => {
  const [name, other] = [freshName(), freshName()];
  const locks = useLocks();
  const { key, uuid } = await locks.request(name, (held) => held);
  const kept = await locks.acquire(other);
  await appendLate(key, uuid, kept.key);
  await until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 0,
  );
  kept.assertHeld();
  await kept.release();
});

test('a client keeps the other entries of that lease', async () => {
  const locks = useLocks();
  const { key, uuid } = await locks.request(freshName(), (held) => held);
  const kept = await Promise.all([freshName(), freshName()].map((name) => locks.acquire(name)));
  await appendLate(key, uuid, kept[0]?.key ?? '');
  await until(
    () => entriesBelow(key),
    ({ length }) => length === 0,
  );
  for (const held of kept) {
    expect(await entriesBelow(held.key)).toHaveLength(1);
    expect(await held.release()).toBe(true);
  }
});
