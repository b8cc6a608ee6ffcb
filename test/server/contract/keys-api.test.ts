import { afterAll, beforeAll, describe } from 'vitest';
import { EmbeddedEtcd } from '../../../src/server/index.ts';
import { MemoryStore } from '../../../src/server/store/memory.ts';
import { Store } from '../../../src/server/store/store.ts';
import { V2Client } from '../../../src/v2/client.ts';
import { keysApiContract } from '../../suites/keys-api.ts';
import { lockContractOnV2 } from '../../suites/lock.ts';
import { managerContractOnV2 } from '../../suites/manager.ts';

describe('in memory', () => {
  const store = new Store();
  keysApiContract('the memory store', () => new MemoryStore(store));
  lockContractOnV2('the memory store', () => new MemoryStore(store));
  managerContractOnV2('the memory store', () => new MemoryStore(store));
});

// The project "embedded" runs all lock tests, and so the contracts of Lock and LockManager, on the embedded server.
describe('over HTTP', () => {
  let etcd: EmbeddedEtcd;

  beforeAll(async () => {
    etcd = await EmbeddedEtcd.start();
  });

  afterAll(() => etcd.stop());

  keysApiContract('V2Client on the embedded server', () => new V2Client({ endpoints: etcd.url }));
});
