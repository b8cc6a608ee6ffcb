import type { LookupAddress, SrvRecord } from 'node:dns';
import { lookup, resolveSrv } from 'node:dns/promises';
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { EtcdClient, EtcdConnectionFailed, LockManager } from '../../../src/index.ts';
import { type Request, startTcpProxy, type TcpProxy } from '../../faults/tcp-proxy.ts';
import { connect, rejection, serve } from '../../support/clients.ts';
import { freshName } from '../../support/locks.ts';
import { answer, refuse, silent, startTcpServer, type TcpHandler } from '../../support/tcp-server.ts';
import { until } from '../../support/until.ts';
import { file, got, rawAnswer } from '../../support/v2-answers.ts';

vi.mock('node:dns/promises', () => ({ resolveSrv: vi.fn(), lookup: vi.fn() }));

const KEY = '/_locks/x/00000000000000000004';
const SRV = { srvDomain: 'example.org' };
const good = answer(rawAnswer(200, got(KEY)));
const MINUTE = 60_000;

beforeEach(() => {
  ahead = 0;
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + ahead);
  vi.mocked(lookup).mockRejectedValue(notFound());
});

afterEach(() => {
  vi.mocked(resolveSrv).mockReset();
  vi.mocked(lookup).mockReset();
  vi.restoreAllMocks();
});

const notFound = () => Object.assign(new Error('ENOTFOUND'), { code: 'ENOTFOUND' });

/** From now on, the SRV records name these ports of this machine, in this order. */
function publish(...members: readonly { readonly url: string }[]): void {
  const records = members.map(({ url }, priority): SrvRecord => {
    const { hostname: name, port } = new URL(url);
    return { name, port: Number(port), priority, weight: 1 };
  });
  vi.mocked(resolveSrv).mockImplementation(async (name) => {
    if (name.startsWith('_etcd._tcp.')) return records;
    throw notFound();
  });
}

const lookups = () => vi.mocked(resolveSrv).mock.calls.filter(([name]) => name.startsWith('_etcd-client-ssl')).length;

/** Moves the monotonic clock forward, and leaves timers alone. */
function later(ms: number): void {
  ahead += ms;
}
let ahead = 0;

describe('a client finds members that have moved', () => {
  test('when all that it knows have failed, within the same call', async () => {
    const [a, b] = [await serve(refuse), await serve(good)];
    publish(a);
    const client = connect(SRV);
    await rejection(client.get(KEY), EtcdConnectionFailed);
    publish(b);
    later(3000);
    expect((await client.get(KEY)).node.key).toBe(KEY);
  });

  test('when all that it knows are silent', async () => {
    const [a, b] = [await serve(silent), await serve(good)];
    publish(a);
    const client = connect(SRV);
    const call = client.get(KEY, { attemptTimeout: 0.1 });
    await a.nextRequest();
    publish(b);
    later(3000);
    expect((await call).node.key).toBe(KEY);
  });

  test('after a minute, although those that it knows answer', async () => {
    const [a, b] = [await serve(good), await serve(good)];
    publish(a);
    const client = connect(SRV);
    await client.get(KEY);
    publish(b);
    await client.get(KEY);
    expect(lookups()).toBe(1);
    later(MINUTE);
    const answered = async () => {
      await client.get(KEY);
      return b.requests.length;
    };
    await until(answered, (count) => count > 0);
    const asked = a.requests.length;
    await client.get(KEY);
    expect([a.requests.length, lookups()]).toEqual([asked, 2]);
  });
});

test('a client keeps to its member if a later lookup still names it', async () => {
  const [a, b] = [await serve(good), await serve(good)];
  publish(a);
  const client = connect(SRV);
  await client.get(KEY);
  publish(b, a);
  later(MINUTE);
  await client.get(KEY);
  await until(lookups, (count) => count === 2);
  await client.get(KEY);
  expect([a.requests.length, b.requests.length]).toEqual([3, 0]);
});

test('a failed lookup keeps the members', async () => {
  const a = await serve(good);
  publish(a);
  const client = connect(SRV);
  await client.get(KEY);
  vi.mocked(resolveSrv).mockRejectedValue(Object.assign(new Error('ESERVFAIL'), { code: 'ESERVFAIL' }));
  later(MINUTE);
  await client.get(KEY);
  await until(lookups, (count) => count === 2);
  await client.get(KEY);
  expect(a.requests.length).toBe(3);
});

test('a lookup that is not answered delays no call, and is not repeated', async () => {
  const a = await serve(good);
  publish(a);
  const client = connect(SRV);
  await client.get(KEY);
  vi.mocked(resolveSrv)
    .mockReset()
    .mockReturnValue(new Promise(() => {}));
  later(MINUTE);
  for (let calls = 0; calls < 3; calls += 1) await client.get(KEY);
  expect(a.requests.length).toBe(4);
  expect(resolveSrv).toHaveBeenCalledTimes(1);
});

test('while no member answers, lookups are two seconds apart', async () => {
  const a = await serve(refuse);
  publish(a);
  const client = connect(SRV);
  for (let calls = 0; calls < 2; calls += 1) await rejection(client.get(KEY), EtcdConnectionFailed);
  expect(lookups()).toBe(1);
  later(2000);
  for (let calls = 0; calls < 2; calls += 1) await rejection(client.get(KEY), EtcdConnectionFailed);
  expect(lookups()).toBe(2);
});

test('connections to a member that DNS no longer names are closed when they are idle', async () => {
  const [a, b] = [await serve(good), await serve(good)];
  publish(a);
  const client = connect(SRV);
  await client.get(KEY);
  for (let minutes = 1; minutes <= 2; minutes += 1) {
    publish(b);
    later(MINUTE);
    await until(
      async () => {
        await client.get(KEY);
        return lookups();
      },
      (count) => count === minutes + 1,
    );
  }
  await until(
    () => a.openSockets,
    (open) => open === 0,
  );
});

const isKeepAlive = ({ path }: Request): boolean => path.endsWith('/lease/keepalive');

describe.each(['v2', 'v3', 'both'] as const)('with api %s', (api) => {
  async function move(): Promise<TcpProxy> {
    const proxy = await startTcpProxy(inject('etcd'));
    onTestFinished(() => proxy.stop());
    return proxy;
  }

  test('a hold survives that all members move', async () => {
    const before = [await move(), await move()];
    publish(...before);
    const client = new EtcdClient({ ...SRV, api });
    onTestFinished(() => client.close().catch(() => {}));
    const held = await new LockManager(client, { ttl: 6 }).acquire(freshName());
    const after = await move();
    publish(after);
    await Promise.all(before.map((proxy) => proxy.stop()));
    const isRenewal = { v2: ({ method }: Request) => method === 'PUT', v3: isKeepAlive };
    const stores = api === 'both' ? (['v2', 'v3'] as const) : [api];
    await until(
      () => stores.every((store) => after.requests.filter(isRenewal[store]).some(({ answer }) => answer !== undefined)),
      (renewed) => renewed,
    );
    expect(held.signal.aborted).toBe(false);
    expect(await held.release()).toBe(true);
  });
});

describe('a host name with several addresses', () => {
  /** Servers at one port of two addresses of this machine. */
  async function pair(first: TcpHandler, second: TcpHandler) {
    const one = await serve(first);
    const two = await startTcpServer(second, { host: '127.0.0.2', port: one.port });
    onTestFinished(() => two.stop());
    return { one, two, url: `http://etcd.example.org:${one.port}` };
  }
  const at = (...addresses: readonly string[]): void => {
    const all = addresses.map((address): LookupAddress => ({ address, family: 4 }));
    vi.mocked(lookup).mockResolvedValue(all as never);
  };

  test('is asked at the next one if the first accepts the connection and is silent', async () => {
    const { one, two, url } = await pair(silent, good);
    at('127.0.0.1', '127.0.0.2');
    const client = connect({ endpoints: url });
    expect((await client.get(KEY, { attemptTimeout: 0.2 })).node.key).toBe(KEY);
    await client.get(KEY);
    expect([one.requests.length, two.requests.length]).toEqual([1, 2]);
  });

  test('is asked at the next one for a write, too', async () => {
    const removed = answer(rawAnswer(200, { action: 'compareAndDelete', node: file(KEY) }));
    const { two, url } = await pair(silent, removed);
    at('127.0.0.1', '127.0.0.2');
    await connect({ endpoints: url }).delete(KEY, { prevValue: 'u1', attemptTimeout: 0.2 });
    expect(two.requests.length).toBe(1);
  });

  test('is asked at its new address after it has moved', async () => {
    const { one, two, url } = await pair(refuse, good);
    at('127.0.0.1');
    const client = connect({ endpoints: url });
    await rejection(client.get(KEY), EtcdConnectionFailed);
    expect(one.requests.length).toBe(1);
    at('127.0.0.2');
    later(3000);
    expect((await client.get(KEY)).node.key).toBe(KEY);
    expect(two.requests.length).toBe(1);
  });

  test('is asked at the addresses that are known while DNS does not answer', async () => {
    const { one, url } = await pair(good, refuse);
    at('127.0.0.1');
    const client = connect({ endpoints: url });
    await client.get(KEY);
    vi.mocked(lookup)
      .mockReset()
      .mockReturnValue(new Promise(() => {}) as never);
    later(MINUTE);
    for (let calls = 0; calls < 3; calls += 1) await client.get(KEY);
    expect(one.requests.length).toBe(4);
    expect(lookup).toHaveBeenCalledTimes(1);
  });
});

describe('of several endpoints, a client', () => {
  const asked = (servers: readonly { readonly requests: readonly string[] }[]) =>
    servers.map(({ requests }) => requests.length);

  test('begins with a random one, and keeps to it', async () => {
    const servers = [await serve(good), await serve(good)];
    const endpoints = servers.map(({ url }) => url);
    const used = new Set<number>();
    for (let clients = 0; clients < 40; clients += 1) {
      const before = asked(servers);
      const client = connect({ endpoints, randomizeEndpoints: true });
      for (let calls = 0; calls < 2; calls += 1) await client.get(KEY);
      const [first = 0, second = 0] = asked(servers).map((count, index) => count - (before[index] ?? 0));
      expect([first, second].sort()).toEqual([0, 2]);
      used.add(first === 2 ? 0 : 1);
    }
    expect(used.size).toBe(2);
  });

  test('uses the order given if `randomizeEndpoints` is false', async () => {
    const servers = [await serve(good), await serve(good)];
    const endpoints = servers.map(({ url }) => url);
    for (let clients = 0; clients < 10; clients += 1) await connect({ endpoints, randomizeEndpoints: false }).get(KEY);
    expect(asked(servers)).toEqual([10, 0]);
  });
});
