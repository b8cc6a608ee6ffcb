import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { EtcdClient, type EtcdClientOptions } from '../../src/client.ts';
import { EtcdClusterIdChanged, EtcdLockLost } from '../../src/errors.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { aborted } from '../suites/lock/locks.ts';
import { useAlteredMember } from '../support/altered-member.ts';
import { type EtcdMember, renewCluster, startEtcd } from '../support/etcd.ts';
import { base64, entriesBelow, gateway } from '../support/gateway.ts';
import { freshName, rejection } from '../support/locks.ts';
import { until } from '../support/until.ts';
import { waysOfAsking } from '../support/ways-of-asking.ts';

let etcd: EtcdMember;

beforeAll(async () => {
  etcd = await startEtcd();
});
afterAll(() => etcd.stop());

function connect(options: EtcdClientOptions = {}): EtcdClient {
  const client = new EtcdClient({ api: 'v3', endpoints: etcd.url, ...options });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return client;
}

/** The id of the cluster in hex, as etcd v2's answers have it. The gateway's answers have it in decimal. */
async function clusterId(): Promise<string> {
  const { header } = (await gateway('/kv/range', { key: base64('x') }, etcd.url)) as unknown as {
    header: { cluster_id: string };
  };
  return BigInt(header.cluster_id).toString(16);
}

test('locks work with the id of the cluster as expectedClusterId', async () => {
  const id = await clusterId();
  const client = connect({ expectedClusterId: id });
  expect(await new LockManager(client).request(freshName(), () => 'held')).toBe('held');
  expect(client.clusterId).toBe(id);
});

test('the id of a cluster is the same on v2, where etcd has that API', async () => {
  const { status, headers } = await fetch(`${etcd.url}/v2/keys/`);
  const [code, id] = etcd.hasV2 ? [200, await clusterId()] : [404, null];
  expect({ status, id: headers.get('x-etcd-cluster-id') }).toEqual({ status: code, id });
});

test('with another expectedClusterId, each kind of acquire rejects and writes no key', async () => {
  for (const [way, ask] of waysOfAsking) {
    const name = freshName();
    const error = await rejection(ask(connect({ expectedClusterId: 'abc' }), name));
    expect(error, way).toBeInstanceOf(EtcdClusterIdChanged);
    expect(error, way).toHaveProperty(
      'message',
      expect.stringContaining(`expected cluster abc, but cluster ${await clusterId()} answered`),
    );
    expect(await entriesBelow(`/_locks/${name}/`, etcd.url)).toEqual([]);
  }
});

/** Starts a member that answers requests to this path as one of another cluster would, which has a lease with the same id. */
const useMixedMember = (path: string): Promise<string> =>
  useAlteredMember((asked, { body }) => {
    if (asked !== `POST /v3${path}`) return undefined;
    return { body: body.replace(/("cluster_id": ?)"\d+"/, '$1"17"') };
  }, etcd.url);

test('if another cluster answers the append than created the lease, each kind of acquire rejects and leaves no key', async () => {
  const client = connect({ endpoints: await useMixedMember('/lease/grant') });
  for (const [way, ask] of waysOfAsking) {
    const name = freshName();
    const error = await rejection(ask(client, name));
    expect(error, way).toBeInstanceOf(EtcdClusterIdChanged);
    expect(error, way).toHaveProperty('message', expect.stringContaining('but its lease in cluster 11'));
    await until(
      () => entriesBelow(`/_locks/${name}/`, etcd.url),
      ({ length }) => length === 0,
    );
  }
});

test('if another cluster answers the renewal of the lease than has the entry, the lock is lost', async () => {
  const endpoints = await useMixedMember('/lease/keepalive');
  const held = await new LockManager(connect({ endpoints }), { ttl: 3 }).acquire(freshName());
  expect(await aborted(held.signal)).toHaveProperty('cause', expect.any(EtcdClusterIdChanged));
  expect(await held.release()).toBe(false);
});

test('when the cluster is replaced by another, a hold is lost and a wait rejects with EtcdClusterIdChanged', async () => {
  const holds = await Promise.all(
    [{ expectedClusterId: await clusterId() }, {}].map(async (options) => {
      const name = freshName();
      // Long enough for the new cluster to start on a busy machine.
      const held = await new LockManager(connect(options), { ttl: 24 }).acquire(name);
      const waiting = rejection(new LockManager(connect(options), { ttl: 24 }).acquire(name));
      const entries = () => entriesBelow(`/_locks/${name}/`, etcd.url);
      const [own] = await until(entries, ({ length }) => length === 2);
      return { held, waiting, entries, value: `${own?.value}` };
    }),
  );
  await renewCluster([etcd]);
  // As if a backup had been restored: the same entries in a cluster with another id.
  for (const { held, value } of holds)
    await gateway('/kv/put', { key: base64(held.key), value: base64(value) }, etcd.url);
  for (const { held, waiting, entries, value } of holds) {
    expect(await waiting).toBeInstanceOf(EtcdClusterIdChanged);
    const loss = await aborted(held.signal);
    expect(loss).toBeInstanceOf(EtcdLockLost);
    expect(loss).toHaveProperty('cause', expect.any(EtcdClusterIdChanged));
    expect(await held.release()).toBe(false);
    // The key in the other cluster is not this process's.
    expect(await entries()).toMatchObject([{ key: held.key, value }]);
  }
});
