import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import {
  EtcdClient,
  EtcdClientClosed,
  type EtcdClientOptions,
  EtcdConnectionFailed,
  type PingOptions,
} from '../../src/index.ts';
import { Bridge, EmbeddedEtcd } from '../../src/server/index.ts';
import { type EtcdMember, startEtcd } from '../support/etcd.ts';
import { gateway } from '../support/gateway.ts';

const DOWN = 'http://127.0.0.1:1';

function useClient(options: EtcdClientOptions): EtcdClient {
  const client = new EtcdClient(options);
  onTestFinished(() => client.close());
  return client;
}

const healthy = (url: string, api: 'v2' | 'v3') => ({ url, api, ok: true, latency: expect.any(Number) });

describe.each([
  ['v2', ['v2']],
  ['v3', ['v3']],
  ['both', ['v2', 'v3']],
] as const)('with api %s', (api, asked) => {
  test('ping() says which members answer, and why the others do not', async () => {
    const endpoints = [inject('etcd'), DOWN];
    const results = await useClient({ endpoints, api }).ping();
    const failed = expect.any(EtcdConnectionFailed);
    expect(results).toEqual(
      asked.flatMap((one) => [{ url: DOWN, api: one, ok: false, error: failed }, healthy(inject('etcd'), one)]),
    );
    for (const { ok, latency = -1 } of results) expect(latency > 0 && latency < 60).toBe(ok);
  });

  test('a member that does not answer is reported after the timeout', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as { port: number };
    const client = useClient({ endpoints: `http://127.0.0.1:${port}`, api });
    const results = await client.ping({ timeout: 0.2 });
    expect(results.map(({ error }) => error?.message)).toEqual(asked.map(() => 'no answer in 0.2 s'));
  });

  test('ping() also works on the embedded server', async () => {
    const etcd = await EmbeddedEtcd.start();
    onTestFinished(() => etcd.stop());
    expect(await useClient({ endpoints: etcd.url, api }).ping()).toEqual(asked.map((one) => healthy(etcd.url, one)));
  });

  test('a closed client cannot ping', async () => {
    const client = new EtcdClient({ endpoints: inject('etcd'), api });
    await client.close();
    await expect(client.ping()).rejects.toBeInstanceOf(EtcdClientClosed);
  });

  test.each([
    [{ timeout: 0 }, 'timeout must be a number of seconds > 0, got 0'],
    [{ timeoutMs: 100 }, 'unknown option "timeoutMs": use "timeout", in seconds'],
  ])('%j as options is an error', async (options, message) => {
    await expect(useClient({ endpoints: DOWN, api }).ping(options as PingOptions)).rejects.toThrow(message);
  });
});

describe('a member of etcd', () => {
  let etcd: EtcdMember;
  beforeAll(async () => {
    etcd = await startEtcd();
  });
  afterAll(() => etcd.stop());

  test('writes nothing for a ping, by either API', async () => {
    const written = async () => (await gateway('/maintenance/status', {}, etcd.url))['raftIndex'];
    const client = useClient({ endpoints: etcd.url, api: 'both' });
    const before = await written();
    for (let i = 0; i < 10; i += 1) expect((await client.ping()).every(({ ok }) => ok)).toBe(true);
    expect(await written()).toBe(before);
  });

  test('with an alarm is not healthy on v3', async () => {
    const { header } = await gateway('/maintenance/status', {}, etcd.url);
    const alarm = { memberID: (header as unknown as { member_id: string }).member_id, alarm: 'NOSPACE' };
    await gateway('/maintenance/alarm', { ...alarm, action: 'ACTIVATE' }, etcd.url);
    const [result] = await useClient({ endpoints: etcd.url, api: 'v3' }).ping();
    expect(result).toMatchObject({ ok: false, error: { message: expect.stringContaining('NOSPACE') } });
    await gateway('/maintenance/alarm', { ...alarm, action: 'DEACTIVATE' }, etcd.url);
  });

  test('without the API of the client is not healthy', async () => {
    const without = await startEtcd({ args: ['--enable-v2=false'] });
    onTestFinished(() => without.stop());
    const results = await useClient({ endpoints: without.url, api: 'both' }).ping();
    expect(results.map(({ api, ok }) => [api, ok])).toEqual([
      ['v2', false],
      ['v3', true],
    ]);
  });

  test('that a bridge cannot reach makes the bridge unhealthy', async () => {
    const behind = await startEtcd();
    onTestFinished(() => behind.stop());
    const bridge = await Bridge.start({ endpoints: behind.url, port: 0 });
    onTestFinished(() => bridge.stop());
    const client = useClient({ endpoints: bridge.url });
    expect(await client.ping()).toEqual([healthy(bridge.url, 'v2')]);
    await behind.kill();
    const [result] = await client.ping();
    expect(result).toMatchObject({ ok: false, error: { message: 'the member knows no leader' } });
  });
});
