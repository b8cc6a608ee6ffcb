import { expect, onTestFinished, test } from 'vitest';
import { EtcdLockLimitDiffers } from '../../src/errors.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { useEtcdClient } from '../support/both.ts';
import { startEtcd } from '../support/etcd.ts';
import { gate } from '../support/gate.ts';
import { freshName, raw, rejection, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';

const isRemoval = ({ method, path, body }: ProxiedRequest): boolean =>
  method === 'DELETE' ||
  path.endsWith('/deleterange') ||
  path.endsWith('/revoke') ||
  body.includes('request_delete_range');

test('the first entry on v2 sets the limit, although a refused request with another one is still in a queue', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const name = freshName();
  // The numbers on v2 are then greater than the revisions on v3: they cannot be compared.
  for (let write = 0; write < 100; write += 1) await raw('PUT', '/noise', { value: String(write) }, etcd.url);
  await raw('POST', `/_locks/${name}`, { value: 'limit:3:0123456789abcdef0123456789abcdef', ttl: '60' }, etcd.url);
  const proxy = await useProxy(etcd.url);
  const removed = gate();
  proxy.intercept((request) => (isRemoval(request) ? { hold: removed.opened } : undefined));
  const removing = proxy.next(isRemoval, 'arrived');
  const locksAt = (endpoints: string) => new LockManager(useEtcdClient({ endpoints }), { ttl: 30 });
  const refused = rejection(locksAt(proxy.url).acquire(name, { limit: 5 }));
  await removing;
  const held = await locksAt(etcd.url).acquire(name, { limit: 3, timeout: 60 });
  removed.open();
  expect(await refused).toBeInstanceOf(EtcdLockLimitDiffers);
  await held.release();
});
