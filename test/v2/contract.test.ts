import { afterAll, beforeAll } from 'vitest';
import { EtcdClient } from '../../src/v2/client.ts';
import { keysApiContract } from '../suites/keys-api.ts';
import { type EtcdMember, startEtcd } from '../support/etcd.ts';

// An etcd of its own: other tests write thousands of events to the shared one, which clears its history under this one.
let etcd: EtcdMember;

beforeAll(async () => {
  etcd = await startEtcd();
});

afterAll(() => etcd.stop());

keysApiContract('EtcdClient on etcd', () => new EtcdClient({ endpoints: etcd.url }));
