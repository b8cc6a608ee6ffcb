import { expect, inject, test } from 'vitest';
import { base64, entriesBelow, gateway } from '../../test/support/gateway.ts';
import { freshName } from '../../test/support/locks.ts';
import { Contender } from './contenders.ts';
import { untilQueued } from './queue.ts';

const VERSIONS = ['3.5', '3.6'] as const;

function setUp(version: (typeof VERSIONS)[number]) {
  const etcd = inject('servers')[version];
  const lock = `/_locks/${freshName()}`;
  const node = new Contender('Node', { etcd, lock, ttl: 60 });
  const aetcd = (key: string) => new Contender('aetcd', { etcd, lock: key, ttl: 60 });
  return { etcd, lock, node, aetcd };
}

test.each(VERSIONS)(
  'on etcd %s, aetcd is not in the queue: it and LockManager hold the same name at once',
  async (v) => {
    const { etcd, lock, node, aetcd } = setUp(v);
    const other = aetcd(lock);
    await Promise.all([node.hold(), other.hold()]);
    expect((await gateway('/kv/range', { key: base64(lock) }, etcd)).kvs).toHaveLength(1);
    expect(await entriesBelow(`${lock}/`, etcd)).toHaveLength(1);
    await Promise.all([node.release(), other.release()]);
  },
);

test.each(VERSIONS)(
  'on etcd %s, aetcd does not wait for LockManager with a key in its queue either',
  async (version) => {
    const { etcd, lock, node, aetcd } = setUp(version);
    await node.hold();
    await aetcd(`${lock}/aetcd`).hold();
    expect(await entriesBelow(`${lock}/`, etcd)).toHaveLength(2);
  },
);

test.each(VERSIONS)('on etcd %s, LockManager waits for a key of aetcd in its queue', async (version) => {
  const { etcd, lock, node, aetcd } = setUp(version);
  const other = aetcd(`${lock}/aetcd`);
  const token = await other.hold();
  const waiting = node.hold();
  await untilQueued(lock, 2, etcd);
  await other.release();
  expect(await waiting).toBeGreaterThan(token);
  await node.release();
});
