import { afterAll, beforeAll } from 'vitest';
import { V2Client } from '../../../src/v2/client.ts';
import { keysApiContract } from '../../suites/keys-api.ts';
import { type EtcdMember, startEtcd } from '../../support/etcd.ts';

// The shared etcd gets thousands of events from other tests, which would clear its history during these tests.
let etcd: EtcdMember;

beforeAll(async () => {
  etcd = await startEtcd();
});

afterAll(() => etcd.stop());

keysApiContract('V2Client on etcd', () => new V2Client({ endpoints: etcd.url }));
