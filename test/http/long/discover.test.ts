import type { SrvRecord } from 'node:dns';
import { resolveSrv } from 'node:dns/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { EtcdClientClosed, EtcdConnectionFailed } from '../../../src/errors.ts';
import { discover } from '../../../src/http/failover/srv.ts';
import { V2Client } from '../../../src/v2/client.ts';
import { connect, rejection, serve } from '../../support/clients.ts';
import { answer } from '../../support/tcp-server.ts';
import { got, rawAnswer } from '../../support/v2-answers.ts';

vi.mock('node:dns/promises', async (original) => ({ ...(await original()), resolveSrv: vi.fn() }));

afterEach(() => {
  vi.mocked(resolveSrv).mockReset();
});

const record = (name: string, priority: number, weight: number, port = 2379): SrvRecord => ({
  name,
  port,
  priority,
  weight,
});
const notFound = () => Object.assign(new Error('querySrv ENOTFOUND'), { code: 'ENOTFOUND' });
const good = answer(rawAnswer(200, got('/x')));

const PLAIN = { srvDomain: 'example.org', srvName: undefined, tls: {} };
const TLS = { ...PLAIN, tls: { ca: 'a certificate' } };

/** A resolver that knows the records of these names. Any other name does not exist. */
const knowing = (zone: Record<string, SrvRecord[]>) =>
  vi.fn(async (name: string) => zone[name] ?? Promise.reject(notFound()));

/** The name of python-etcd's records. */
const PYTHON = '_etcd._tcp.example.org';
const zoneOf = (port: number) => knowing({ [PYTHON]: [record('127.0.0.1', 1, 1, port)] });

const one = [record('a.example.org', 1, 1)];

test.each([
  ['_etcd-client-ssl._tcp.example.org', PLAIN, 'https://a.example.org:2379'],
  ['_etcd-client._tcp.example.org', PLAIN, 'http://a.example.org:2379'],
  ['_etcd._tcp.example.org', PLAIN, 'http://a.example.org:2379'],
  ['_etcd-client-ssl._tcp.example.org', TLS, 'https://a.example.org:2379'],
  ['_etcd._tcp.example.org', TLS, 'https://a.example.org:2379'],
  ['_etcd-client-ssl-blue._tcp.example.org', { ...PLAIN, srvName: 'blue' }, 'https://a.example.org:2379'],
  ['_etcd-client-blue._tcp.example.org', { ...PLAIN, srvName: 'blue' }, 'http://a.example.org:2379'],
])('the records of %s with %j are endpoints with their scheme', async (name, settings, url) => {
  expect(await discover(settings, knowing({ [name]: one }))).toEqual([url]);
});

test('etcdctl’s records are looked up first, those with TLS before those without', async () => {
  const other = [record('b.example.org', 1, 1)];
  const zone = knowing({
    '_etcd-client-ssl._tcp.example.org': one,
    '_etcd-client._tcp.example.org': other,
    '_etcd._tcp.example.org': other,
  });
  expect(await discover(PLAIN, zone)).toEqual(['https://a.example.org:2379']);
  const python = knowing({ '_etcd-client._tcp.example.org': one, '_etcd._tcp.example.org': other });
  expect(await discover(PLAIN, python)).toEqual(['http://a.example.org:2379']);
});

test.each([
  [
    'with TLS',
    TLS,
    '_etcd-client._tcp.example.org',
    /_etcd-client-ssl\._tcp\.example\.org, _etcd\._tcp\.example\.org$/,
  ],
  ['with a name', { ...PLAIN, srvName: 'blue' }, '_etcd._tcp.example.org', /_etcd-client-ssl-blue\._tcp.*-blue\._tcp/],
])('%s, other records are not used', async (_, settings, name, message) => {
  const error = await rejection(discover(settings, knowing({ [name]: one })), EtcdConnectionFailed);
  expect(error.message).toMatch(message);
});

test('a record that says that there is no such service is not used', async () => {
  const zone = knowing({ '_etcd-client-ssl._tcp.example.org': [record('', 0, 0, 0)], [PYTHON]: one });
  expect(await discover(PLAIN, zone)).toEqual(['http://a.example.org:2379']);
});

test('a failed lookup is an error with the name of the record, and no other name is looked up', async () => {
  const cause = Object.assign(new Error('querySrv ESERVFAIL'), { code: 'ESERVFAIL' });
  const resolve = vi.fn(() => Promise.reject(cause));
  const error = await rejection(discover(PLAIN, resolve), EtcdConnectionFailed);
  expect(error.message).toBe('SRV lookup of _etcd-client-ssl._tcp.example.org failed: querySrv ESERVFAIL');
  expect(error.cause).toBe(cause);
  expect(error.outcomeUnknown).toBe(false);
  expect(resolve).toHaveBeenCalledTimes(1);
});

describe('SRV records', () => {
  const orderOf = async (records: SrvRecord[], random?: () => number) =>
    (await discover(PLAIN, knowing({ '_etcd._tcp.example.org': records }), random)).map(
      (url) => new URL(url).hostname[0],
    );

  test('of a lower priority come first', async () => {
    const records = [record('b.org', 20, 100), record('c.org', 30, 100), record('a.org', 10, 1)];
    expect(await orderOf(records)).toEqual(['a', 'b', 'c']);
  });

  test('of one priority are drawn by weight', async () => {
    const records = [record('a.org', 1, 10), record('b.org', 1, 10), record('c.org', 1, 20)];
    const first = { a: 0, b: 0, c: 0 };
    // 41 equally likely numbers from 0 to the sum of the weights.
    for (let at = 0; at < 41; at += 1) {
      const [winner] = await orderOf(records, () => (at + 0.5) / 41);
      first[winner as 'a'] += 1;
    }
    expect(first).toEqual({ a: 11, b: 10, c: 20 });
  });

  test('without a weight are rarely first, but can be', async () => {
    const records = [record('a.org', 1, 100), record('b.org', 1, 0)];
    expect(await orderOf(records, () => 0)).toEqual(['b', 'a']);
    expect(await orderOf(records, () => 0.5)).toEqual(['a', 'b']);
  });

  test('give different clients different members', async () => {
    const records = [record('a.org', 1, 10), record('b.org', 1, 10), record('c.org', 1, 20)];
    const winners = await Promise.all(Array.from({ length: 100 }, async () => (await orderOf(records))[0]));
    expect(new Set(winners)).toEqual(new Set(['a', 'b', 'c']));
  });
});

test('a client asks DNS once, at its first call', async () => {
  const a = await serve(good);
  vi.mocked(resolveSrv).mockImplementation(zoneOf(a.port));
  const client = connect({ srvDomain: 'example.org' });
  expect(resolveSrv).not.toHaveBeenCalled();
  await Promise.all([client.get('/x'), client.get('/x')]);
  await client.get('/x');
  expect(vi.mocked(resolveSrv).mock.calls.filter(([name]) => name === PYTHON)).toHaveLength(1);
  expect(a.requests.length).toBe(3);
});

test('a client repeats a failed DNS lookup with the next call', async () => {
  const a = await serve(good);
  vi.mocked(resolveSrv).mockRejectedValue(notFound());
  const client = connect({ srvDomain: 'example.org' });
  await rejection(client.get('/x'), EtcdConnectionFailed);
  vi.mocked(resolveSrv).mockImplementation(zoneOf(a.port));
  expect((await client.get('/x')).node.key).toBe('/x');
});

test('failed DNS lookups of many calls are limited to four a second', async () => {
  vi.mocked(resolveSrv).mockRejectedValue(Object.assign(new Error('querySrv ESERVFAIL'), { code: 'ESERVFAIL' }));
  const client = connect({ srvDomain: 'example.org' });
  const end = performance.now() + 600;
  const retrying = async () => {
    while (performance.now() < end) await rejection(client.get('/x'), EtcdConnectionFailed);
  };
  await Promise.all([retrying(), retrying(), retrying()]);
  expect(vi.mocked(resolveSrv).mock.calls.length).toBeLessThanOrEqual(4);
});

test('a lookup without records is an error', async () => {
  vi.mocked(resolveSrv).mockResolvedValue([]);
  const error = await rejection(connect({ srvDomain: 'example.org' }).get('/x'), EtcdConnectionFailed);
  expect(error.message).toContain('_etcd._tcp.example.org');
});

test('the caller’s abort ends a call during the DNS lookup', async () => {
  const dns = lateDns();
  const client = new V2Client({ srvDomain: 'example.org' });
  const caller = new AbortController();
  const call = client.get('/x', { signal: caller.signal }).catch((error: unknown) => error);
  await vi.waitFor(() => expect(resolveSrv).toHaveBeenCalled());
  caller.abort('enough');
  const first = await Promise.race([call, ticks()]);
  dns.fail();
  await call;
  await client.close();
  expect(first).toBe('enough');
});

test('closing does not wait for the DNS lookup', async () => {
  const dns = lateDns();
  const client = new V2Client({ srvDomain: 'example.org' });
  const call = client.get('/x').catch((error: unknown) => error);
  await vi.waitFor(() => expect(resolveSrv).toHaveBeenCalled());
  const closed = client.close({ timeout: 0 }).then(() => 'closed');
  const first = await Promise.race([closed, ticks()]);
  dns.fail();
  await closed;
  expect(await call).toBeInstanceOf(EtcdClientClosed);
  expect(first).toBe('closed');
});

/** A DNS lookup that is pending until `fail()` is called. */
function lateDns() {
  let fail = () => {};
  vi.mocked(resolveSrv).mockReturnValue(
    new Promise((_, reject) => {
      fail = () => reject(notFound());
    }),
  );
  return { fail: () => fail() };
}

/** Takes longer than anything that does not wait for I/O. */
async function ticks(): Promise<string> {
  for (let i = 0; i < 50; i += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  return 'still waiting';
}
