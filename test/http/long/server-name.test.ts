import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createSecureContext } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ignore } from '../../../src/base/cancellation.ts';
import { EtcdClient, type EtcdClientOptions, EtcdTlsFailed, LockManager } from '../../../src/index.ts';
import { APIS } from '../../support/apis.ts';
import { encrypted, makeAuthority } from '../../support/certificates.ts';
import { freshName, rejection } from '../../support/locks.ts';
import { useTlsEtcd } from '../../support/secured-etcd.ts';

const authority = makeAuthority();
const { ca } = authority;
const elsewhere = authority.issue({ hosts: ['etcd.test'] });

function useLocks(options: EtcdClientOptions): LockManager {
  const client = new EtcdClient(options);
  onTestFinished(() => client.close({ timeout: 0 }).catch(ignore));
  return new LockManager(client);
}

describe.each(APIS)('with api %s, on an etcd whose certificate lacks its address', (api) => {
  test('a client that knows the name in the certificate gets the lock', async () => {
    const { url } = await useTlsEtcd(elsewhere);
    const locks = useLocks({ api, endpoints: url, ca, serverName: 'etcd.test' });
    expect(await locks.request(freshName(), () => 'held')).toBe('held');
  });

  test('a client with another name, or with none, does not trust the server', async () => {
    const { url } = await useTlsEtcd(elsewhere);
    for (const wrong of [{ serverName: 'other.test' }, {}]) {
      const error = await rejection(useLocks({ api, endpoints: url, ca, ...wrong }).acquire(freshName()));
      expect(error).toBeInstanceOf(EtcdTlsFailed);
      expect(error).toHaveProperty('message', expect.stringContaining(wrong.serverName ?? '127.0.0.1'));
    }
  });

  test('a client with an encrypted key and its passphrase gets the lock', async () => {
    const { url } = await useTlsEtcd(authority.issue(), authority);
    const { cert, key } = authority.issue({ unnamed: true });
    const own = { cert, key: encrypted(key, 'open it'), passphrase: 'open it' };
    expect(await useLocks({ api, endpoints: url, ca, ...own }).request(freshName(), () => 'held')).toBe('held');
  });
});

test('the name is sent to the server, which chooses its certificate by it', async () => {
  const names: string[] = [];
  const server = createServer({
    ...authority.issue({ hosts: ['default.test'] }),
    SNICallback: (name, callback) => {
      names.push(name);
      callback(null, createSecureContext(elsewhere));
    },
  });
  server.on('request', (_, response) => response.writeHead(403).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const locks = useLocks({ endpoints: `127.0.0.1:${port}`, ca, serverName: 'etcd.test' });
  expect(await rejection(locks.acquire('x'))).not.toBeInstanceOf(EtcdTlsFailed);
  expect(names).toEqual(['etcd.test']);
});
