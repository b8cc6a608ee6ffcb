import { afterAll, beforeAll } from 'vitest';
import { EmbeddedEtcd } from '../../../src/server/index.ts';
import { MemoryStore } from '../../../src/server/store/memory.ts';
import { Store } from '../../../src/server/store/store.ts';
import { V2Client } from '../../../src/v2/client.ts';
import { keysApiContract } from '../../suites/keys-api.ts';

// The project "embedded" runs all lock tests, and so the contracts of Lock and LockManager, on the embedded server.
const store = new Store();
let etcd: EmbeddedEtcd;

beforeAll(async () => {
  etcd = await EmbeddedEtcd.start();
});

afterAll(() => etcd.stop());

keysApiContract('the memory store', () => new MemoryStore(store));
keysApiContract('V2Client on the embedded server', () => new V2Client({ endpoints: etcd.url }));
