import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { Front } from '../../../src/server/front/front.ts';
import { createHttpServer } from '../../../src/server/front/http-server.ts';
import { forEveryone } from '../../../src/server/served-keys.ts';
import { V2Client } from '../../../src/v2/client.ts';
import { keysApiContract } from '../../suites/keys-api.ts';
import { type EtcdMember, startEtcd } from '../../support/etcd.ts';

/** A store for the front: a client of a real etcd. The contract uses no streams. */
class RemoteStore extends V2Client {
  stream(): never {
    throw new Error('streams are not supported');
  }
}

// The front serves any store. This one is another server, so its answers take longer.
const server = createHttpServer();
let etcd: EtcdMember;
let store: RemoteStore;
let url: string;

beforeAll(async () => {
  etcd = await startEtcd();
  store = new RemoteStore({ endpoints: etcd.url });
  const member = { id: '1', name: 'front', peerURLs: [], clientURLs: [] };
  new Front({ keys: forEveryone(store), member, hosts: ['127.0.0.1'] }).serve(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  server.close();
  server.closeAllConnections();
  await store.close();
  await etcd.stop();
});

keysApiContract('V2Client on the front on etcd', () => new V2Client({ endpoints: url }));
