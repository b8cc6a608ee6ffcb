import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { Front } from '../../src/server/front/front.ts';
import { createHttpServer } from '../../src/server/front/http-server.ts';
import { EtcdClient } from '../../src/v2/client.ts';
import { keysApiContract } from '../suites/keys-api.ts';
import { type EtcdMember, startEtcd } from '../support/etcd.ts';

/** The contract has no streams. */
class Behind extends EtcdClient {
  stream(): never {
    throw new Error('no test asks for a stream');
  }
}

// The front is for any store: here the one behind it is far away, and answers late.
const server = createHttpServer();
let etcd: EtcdMember;
let behind: Behind;
let url: string;

beforeAll(async () => {
  etcd = await startEtcd();
  behind = new Behind({ endpoints: etcd.url });
  server.on(
    'request',
    new Front(behind, { id: '1', name: 'front', peerURLs: [], clientURLs: [] }, '127.0.0.1').listener,
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await behind.close();
  await etcd.stop();
});

keysApiContract('EtcdClient on the front on etcd', () => new EtcdClient({ endpoints: url }));
