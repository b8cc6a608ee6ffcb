import type { SrvRecord } from 'node:dns';
import { resolveSrv } from 'node:dns/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { EtcdClientClosed, EtcdConnectionFailed } from '../../src/errors.ts';
import { discover } from '../../src/http/failover/endpoints.ts';
import { V2Client } from '../../src/v2/client.ts';
import { connect, rejection, serve } from '../support/clients.ts';
import { answer } from '../support/tcp-server.ts';
import { got, rawAnswer } from '../support/v2-answers.ts';

vi.mock('node:dns/promises', () => ({ resolveSrv: vi.fn() }));

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

test('SRV records are sorted by priority, then by weight', async () => {
  const resolve = vi.fn<typeof resolveSrv>(async () => [
    record('last.example.org', 20, 100),
    record('light.example.org', 10, 1, 4001),
    record('heavy.example.org', 10, 50),
  ]);
  expect(await discover('example.org', 'http', resolve)).toEqual([
    'http://heavy.example.org:2379',
    'http://light.example.org:4001',
    'http://last.example.org:2379',
  ]);
  expect(resolve.mock.calls).toEqual([['_etcd._tcp.example.org']]);
});

test('with TLS, the discovered endpoints are https URLs', async () => {
  expect(await discover('example.org', 'https', async () => [record('a.example.org', 1, 1)])).toEqual([
    'https://a.example.org:2379',
  ]);
});

test('a failed lookup is an error with the name of the record', async () => {
  const cause = notFound();
  const error = await rejection(
    discover('example.org', 'http', () => Promise.reject(cause)),
    EtcdConnectionFailed,
  );
  expect(error.message).toContain('_etcd._tcp.example.org');
  expect(error.cause).toBe(cause);
  expect(error.outcomeUnknown).toBe(false);
});

test('a client asks DNS once, at its first call', async () => {
  const a = await serve(good);
  vi.mocked(resolveSrv).mockResolvedValue([record('127.0.0.1', 1, 1, a.port)]);
  const client = connect({ srvDomain: 'example.org' });
  expect(resolveSrv).not.toHaveBeenCalled();
  await Promise.all([client.get('/x'), client.get('/x')]);
  await client.get('/x');
  expect(resolveSrv).toHaveBeenCalledTimes(1);
  expect(a.requests.length).toBe(3);
});

test('a client repeats a failed DNS lookup with the next call', async () => {
  const a = await serve(good);
  vi.mocked(resolveSrv).mockRejectedValueOnce(notFound());
  vi.mocked(resolveSrv).mockResolvedValue([record('127.0.0.1', 1, 1, a.port)]);
  const client = connect({ srvDomain: 'example.org' });
  await rejection(client.get('/x'), EtcdConnectionFailed);
  expect((await client.get('/x')).node.key).toBe('/x');
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
