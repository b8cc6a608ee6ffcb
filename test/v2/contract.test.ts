import { afterAll, beforeAll } from 'vitest';
import { EtcdClient } from '../../src/v2/client.ts';
import { keysApiContract } from '../suites/keys-api.ts';
import { type EtcdMember, startEtcd } from '../support/etcd.ts';

// The shared etcd gets thousands of events from other tests, which would clear its history during these tests.
let etcd: EtcdMember;

beforeAll(async () => {
  etcd = await startEtcd();
});

afterAll(() => etcd.stop());

keysApiContract('EtcdClient on etcd', () => new EtcdClient({ endpoints: etcd.url }));
