import { lookup } from 'node:dns/promises';
import { hostname, networkInterfaces } from 'node:os';
import { describe, expect, onTestFinished, test } from 'vitest';
import { EtcdKeyNotFound } from '../../src/errors.ts';
import { EtcdClient, Lock, LockManager } from '../../src/index.ts';
import { EmbeddedEtcd, type EmbeddedEtcdOptions } from '../../src/server/index.ts';
import type { V2Client } from '../../src/v2/client.ts';
import { connect } from '../support/clients.ts';
import { queueOn, untilQueued } from '../support/locks.ts';
import { freePorts } from '../support/ports.ts';
import { RawConnection } from '../support/raw-connection.ts';

async function start(options?: EmbeddedEtcdOptions): Promise<EmbeddedEtcd> {
  const etcd = await EmbeddedEtcd.start(options);
  onTestFinished(() => etcd.stop());
  return etcd;
}

const version = async (url: string) => (await fetch(`${url}/version`)).json();

const healthy = { etcdserver: '3.4.23', etcdcluster: '3.4.0' };

/** The error code with which connecting failed; undefined after success. */
async function refusal(url: string): Promise<unknown> {
  const error = await RawConnection.open(url).then(
    () => undefined,
    (reason: NodeJS.ErrnoException) => reason.code,
  );
  return error;
}

describe('the address the server listens on', () => {
  test('is a free port of the loopback by default', async () => {
    const [a, b] = [await start(), await start({})];
    for (const { url } of [a, b]) expect(url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
    expect(a.url).not.toBe(b.url);
    expect(await version(a.url)).toEqual(healthy);
  });

  test('has the given port', async () => {
    const [port] = await freePorts(1);
    const etcd = await start({ port: port as number });
    expect(etcd.url).toBe(`http://127.0.0.1:${port}`);
    expect(await version(etcd.url)).toEqual(healthy);
  });

  test('cannot have a port in use: the start rejects, and the other server keeps working', async () => {
    const first = await start();
    const port = Number(new URL(first.url).port);
    await expect(EmbeddedEtcd.start({ port })).rejects.toMatchObject({ code: 'EADDRINUSE', port });
    expect(await version(first.url)).toEqual(healthy);
  });

  test('cannot be an address of another machine', async () => {
    await expect(EmbeddedEtcd.start({ host: '203.0.113.1' })).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
  });

  // Empty if the machine has no other address.
  const others = Object.values(networkInterfaces()).flatMap((list = []) =>
    list.filter(({ internal, family }) => !internal && family === 'IPv4').map(({ address }) => address),
  );

  const hasIPv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

  test('cannot be reached by other machines', async () => {
    const port = Number(new URL((await start()).url).port);
    for (const address of [...others, '127.0.0.2'])
      expect(await refusal(`http://${address}:${port}`)).toBe('ECONNREFUSED');
  });

  test('is every address with the host 0.0.0.0, and the url names the loopback', async () => {
    const etcd = await start({ host: '0.0.0.0' });
    expect(etcd.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await version(etcd.url)).toEqual(healthy);
    const { port } = new URL(etcd.url);
    for (const address of [...others, '127.0.0.2']) expect(await version(`http://${address}:${port}`)).toEqual(healthy);
  });

  test.each(['::1', '::'])('may be the IPv6 address %s if the machine has IPv6', async (host) => {
    if (!hasIPv6) {
      await expect(EmbeddedEtcd.start({ host })).rejects.toMatchObject({ syscall: 'listen' });
      return;
    }
    const etcd = await start({ host });
    expect(etcd.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect(await version(etcd.url)).toEqual(healthy);
    const client = connect({ endpoints: etcd.url });
    expect(await client.machines()).toEqual([etcd.url]);
  });

  test('may be a name of this machine, which clients can then use', async () => {
    const found = await lookup(hostname()).catch(() => undefined);
    if (!found) {
      await expect(EmbeddedEtcd.start({ host: hostname() })).rejects.toMatchObject({ syscall: 'getaddrinfo' });
      return;
    }
    const etcd = await start({ host: hostname() });
    const { port } = new URL(etcd.url);
    expect(await version(`http://${hostname()}:${port}`)).toEqual(healthy);
  });

  const bad: [unknown, string][] = [
    [{ port: -1 }, 'port must be an integer ≥ 0, got -1'],
    [{ port: 1.5 }, 'port must be an integer ≥ 0, got 1.5'],
    [{ port: Number.NaN }, 'port must be an integer ≥ 0, got NaN'],
    [{ port: '2379' }, 'port must be an integer ≥ 0, got "2379"'],
    [{ port: null }, 'port must be an integer ≥ 0, got null'],
    [{ port: 65_536 }, 'port must be at most 65535, got 65536'],
    [{ host: '' }, 'host must be an IP address or a host name, got ""'],
    [{ host: 127 }, 'host must be an IP address or a host name, got 127'],
    [{ host: null }, 'host must be an IP address or a host name, got null'],
  ];

  test.each(bad)('cannot be %o', async (options, message) => {
    await expect(EmbeddedEtcd.start(options as EmbeddedEtcdOptions)).rejects.toThrow(message);
  });
});

describe('the APIs of the server', () => {
  const statuses = async (url: string) => {
    const ask = async (path: string, method: string) => (await fetch(`${url}${path}`, { method })).status;
    return { v2: await ask('/v2/keys/', 'GET'), v3: await ask('/v3/maintenance/status', 'POST') };
  };

  test.each<[EmbeddedEtcdOptions, object]>([
    [{}, { v2: 200, v3: 200 }],
    [{ apis: ['v2'] }, { v2: 200, v3: 404 }],
    [{ apis: ['v3'] }, { v2: 404, v3: 200 }],
    [{ version: '3.5' }, { v2: 200, v3: 200 }],
    [{ version: '3.6' }, { v2: 404, v3: 200 }],
  ])('with %o are %o', async (options, expected) => {
    expect(await statuses((await start(options)).url)).toEqual(expected);
  });

  test('have separate keys, and one cluster id', async () => {
    const { url } = await start();
    const [v2, v3] = (['v2', 'v3'] as const).map((api) => {
      const client = new EtcdClient({ endpoints: url, api });
      onTestFinished(() => client.close());
      return new LockManager(client);
    });
    for (const held of [await v2?.acquire('job'), await v3?.acquire('job')]) await held?.release();
    const status = await fetch(`${url}/v3/maintenance/status`, { method: 'POST' });
    const { header } = (await status.json()) as { header: { cluster_id: string } };
    const { clusterId } = await connect({ endpoints: url }).get('/');
    expect(BigInt(header.cluster_id)).toBe(BigInt(`0x${clusterId}`));
  });

  test('keep as many changes as the option `history` says', async () => {
    const { url } = await start({ history: 10 });
    const ask = async (path: string, body: object) =>
      (await fetch(`${url}/v3/kv/${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
    for (let i = 0; i < 100; i += 1) await ask('put', { key: 'YQ==' });
    expect(await ask('range', { key: 'YQ==', revision: '95' })).toMatchObject({ count: '1' });
    expect(await ask('range', { key: 'YQ==', revision: '50' })).toMatchObject({
      message: 'etcdserver: mvcc: required revision has been compacted',
    });
  });

  test.each([
    [{ apis: [] }, 'apis must be a list of v2, v3 or both, got an empty list'],
    [{ apis: ['v3', 'v4'] }, 'apis may contain v2 and v3, got "v4"'],
    [{ apis: 'v3' }, 'apis must be a list of v2, v3 or both, got "v3"'],
    [{ apis: ['v2', 'v3'], version: '3.6' }, 'apis must be v3 alone with version 3.6: etcd 3.6 has no v2'],
    [{ version: '2.3' }, 'version must be one of 3.4, 3.5, 3.6, got "2.3"'],
    [{ version: 3.6 }, 'version must be one of 3.4, 3.5, 3.6, got 3.6'],
    [{ history: 0 }, 'history must be an integer ≥ 1, got 0'],
  ])('cannot be chosen by %o', async (options, message) => {
    await expect(EmbeddedEtcd.start(options as EmbeddedEtcdOptions)).rejects.toThrow(message);
  });
});

test('two servers have separate keys and cluster ids', async () => {
  const [a, b] = [await start(), await start()].map(({ url }) => connect({ endpoints: url })) as [V2Client, V2Client];
  await a.set('/k', 'a');
  await expect(b.get('/k')).rejects.toBeInstanceOf(EtcdKeyNotFound);
  await b.set('/k', 'b');
  const [ofA, ofB] = [await a.get('/k'), await b.get('/k')];
  expect([ofA.node.value, ofB.node.value]).toEqual(['a', 'b']);
  expect(ofA.clusterId).toMatch(/^[0-9a-f]{16}$/);
  expect(ofB.clusterId).toMatch(/^[0-9a-f]{16}$/);
  expect(ofA.clusterId).not.toBe(ofB.clusterId);
});

test('a lock on the embedded server passes from its holder to the next waiter', async () => {
  const { url } = await start();
  const [first, second] = [1, 2].map(() => new Lock(connect({ endpoints: url }), 'job')) as [Lock, Lock];
  expect(await first.acquire({ lockTtl: 60 })).toBe(true);
  const waited = second.acquire({ lockTtl: 60 });
  await untilQueued('job', 2, url);
  await first.release();
  expect(await waited).toBe(true);
  await second.release();
  expect(await queueOn('job', url)).toEqual([]);
});
