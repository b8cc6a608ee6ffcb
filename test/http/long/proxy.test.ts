import { describe, expect, inject, onTestFinished, test, vi } from 'vitest';
import { ignore } from '../../../src/base/cancellation.ts';
import {
  EtcdClient,
  type EtcdClientOptions,
  EtcdConnectionFailed,
  EtcdLockTimeout,
  EtcdTlsFailed,
  LockManager,
} from '../../../src/index.ts';
import { Bridge } from '../../../src/server/bridge/bridge.ts';
import { makeAuthority } from '../../support/certificates.ts';
import { runCli } from '../../support/cli.ts';
import { useConnectProxy } from '../../support/connect-proxy.ts';
import { freshName, rejection } from '../../support/locks.ts';
import { runScript } from '../../support/script.ts';
import { useTlsEtcd } from '../../support/secured-etcd.ts';
import { until } from '../../support/until.ts';

/** Sets the variables of proxies until the end of the test; those that are not given are unset. */
function useVariables(variables: Readonly<Record<string, string>>): void {
  for (const name of ['http_proxy', 'https_proxy', 'no_proxy']) {
    for (const one of [name, name.toUpperCase()]) vi.stubEnv(one, variables[one]);
  }
  onTestFinished(() => void vi.unstubAllEnvs());
}

function useLocks(options: EtcdClientOptions = {}, ttl = 30): LockManager {
  const client = new EtcdClient({ endpoints: inject('etcd'), proxyFromEnvironment: true, ...options });
  onTestFinished(() => client.close({ timeout: 0 }).catch(ignore));
  return new LockManager(client, { ttl });
}

const authority = makeAuthority();
const portOf = (url: string): string => new URL(url).port;

describe.each(['v2', 'v3', 'both'] as const)('with api %s, through a proxy', (api) => {
  test('a lock is held, waited for and handed over, on an http endpoint whose name only the proxy knows', async () => {
    const proxy = await useConnectProxy({ 'etcd.invalid': '127.0.0.1' });
    useVariables({ HTTP_PROXY: proxy.url });
    const endpoints = `http://etcd.invalid:${portOf(inject('etcd'))}`;
    const name = freshName();
    const held = await useLocks({ api, endpoints }).acquire(name);
    const waiting = useLocks({ api, endpoints }).acquire(name);
    expect(await held.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
    expect(new Set(proxy.asked.map(({ target }) => target))).toEqual(new Set([new URL(endpoints).host]));
  });

  test('TLS ends at etcd, with a client certificate, and the proxy gets its credentials', async () => {
    const { url } = await useTlsEtcd(authority.issue(), authority);
    const proxy = await useConnectProxy();
    useVariables({ https_proxy: proxy.url.replace('//', '//app:p%40ss@'), HTTPS_PROXY: 'http://127.0.0.1:1' });
    const locks = useLocks({ api, endpoints: url, ca: authority.ca, ...authority.issue() });
    expect(await locks.request(freshName(), () => 'held')).toBe('held');
    const basic = `Basic ${Buffer.from('app:p@ss').toString('base64')}`;
    expect(new Set(proxy.asked.map(({ authorization }) => authorization))).toEqual(new Set([basic]));
  });

  test('a hold survives that all tunnels are cut', async () => {
    const proxy = await useConnectProxy();
    useVariables({ HTTP_PROXY: proxy.url });
    const locks = useLocks({ api }, 6);
    const held = await locks.acquire(freshName());
    const before = held.expiresIn();
    proxy.cut();
    const asked = proxy.asked.length;
    await until(
      () => proxy.asked.length,
      (count) => count > asked,
    );
    await until(
      () => held.expiresIn(),
      (left) => left > before - 2.5,
    );
    expect(await held.release()).toBe(true);
  });
});

test('without the option, and for hosts in NO_PROXY, no proxy is asked', async () => {
  const proxy = await useConnectProxy();
  useVariables({ HTTP_PROXY: proxy.url, HTTPS_PROXY: proxy.url });
  expect(await useLocks({ proxyFromEnvironment: false }).request(freshName(), () => 'held')).toBe('held');
  for (const NO_PROXY of ['*', '127.0.0.1', 'example.org, 127.0.0.1', `127.0.0.1:${portOf(inject('etcd'))}`]) {
    useVariables({ HTTP_PROXY: proxy.url, NO_PROXY });
    expect(await useLocks().request(freshName(), () => 'held')).toBe('held');
  }
  expect(proxy.asked).toEqual([]);
  for (const NO_PROXY of ['', '127.0.0.1:1', '7.0.0.1', 'example.org']) {
    useVariables({ HTTP_PROXY: proxy.url, NO_PROXY });
    const count = proxy.asked.length;
    expect(await useLocks().request(freshName(), () => 'held')).toBe('held');
    expect(proxy.asked.length).toBeGreaterThan(count);
  }
});

test.each<[string, (proxy: Awaited<ReturnType<typeof useConnectProxy>>) => void, RegExp]>([
  ['refuses', (proxy) => proxy.answer(407), /the proxy http:\/\/127.0.0.1:\d+ opens no tunnel to .*: it answered 407/],
  [
    'is silent',
    (proxy) => proxy.answer(0),
    /no answer in|the proxy http:\/\/127.0.0.1:\d+ opens no tunnel to .*Timeout/,
  ],
])('a request by a proxy that %s fails in time, without the password in its error', async (_, spoil, words) => {
  const proxy = await useConnectProxy();
  spoil(proxy);
  useVariables({ HTTP_PROXY: proxy.url.replace('//', '//app:sesame@') });
  const client = new EtcdClient({ endpoints: inject('etcd'), proxyFromEnvironment: true });
  const locks = new LockManager(client);
  const error = (await rejection(locks.acquire(freshName(), { timeout: 4 }))) as EtcdLockTimeout;
  await client.close({ timeout: 0 }).catch(ignore);
  expect(error).toBeInstanceOf(EtcdLockTimeout);
  expect(error.reason).toBe('unreachable');
  expect(error.message).toMatch(words);
  expect(error.message).not.toMatch(/sesame|app/);
  await until(
    () => proxy.open,
    (open) => open === 0,
  );
});

test('a proxy that cannot be reached is named, without its password', async () => {
  useVariables({ HTTP_PROXY: 'http://app:sesame@127.0.0.1:1' });
  const error = await rejection(useLocks().acquire(freshName(), { timeout: 1 }));
  expect(String(error)).toMatch(/the proxy http:\/\/127.0.0.1:1 opens no tunnel to .*: .*ECONNREFUSED/);
  expect(String(error)).not.toContain('sesame');
});

test('a certificate of another authority is not trusted through a proxy either, and an alert of etcd is reported', async () => {
  const { url } = await useTlsEtcd(authority.issue(), authority);
  const proxy = await useConnectProxy();
  useVariables({ HTTPS_PROXY: proxy.url });
  const distrusting = useLocks({ endpoints: url, ca: makeAuthority().ca });
  expect(await rejection(distrusting.acquire(freshName()))).toBeInstanceOf(EtcdTlsFailed);
  const without = useLocks({ endpoints: url, ca: authority.ca });
  expect(await rejection(without.acquire(freshName()))).toMatchObject({
    message: expect.stringContaining('asks for a client certificate'),
  });
});

test.each([
  [
    'HTTP_PROXY',
    'proxy:3128',
    'HTTP_PROXY must be the URL of a proxy such as "http://proxy.example:3128", got "proxy:3128"',
  ],
  ['https_proxy', 'socks5://proxy:1080', 'https_proxy must be the URL of a proxy'],
  ['HTTPS_PROXY', 'http://u:50%@proxy:3128', 'HTTPS_PROXY must be the URL of a proxy'],
  ['HTTPS_PROXY', 'http://proxy:3128/path', 'got "http://proxy:3128/path"'],
  ['HTTP_PROXY', 'http://app:sesame@', 'got "…@"'],
])('%s=%s is refused by the constructor', (name, value, message) => {
  useVariables({ [name]: value });
  const construct = () => new EtcdClient({ proxyFromEnvironment: true });
  expect(construct).toThrow(RangeError);
  expect(construct).toThrow(message);
  expect(construct).not.toThrow(/sesame/);
  expect(new EtcdClient()).toBeInstanceOf(EtcdClient);
});

test('an option that is no boolean is refused', () => {
  expect(() => new EtcdClient({ proxyFromEnvironment: 'yes' as never })).toThrow(
    'proxyFromEnvironment must be a boolean, got "yes"',
  );
});

test('tunnels do not keep the process alive', async () => {
  const proxy = await useConnectProxy();
  const { code, stderr } = await runScript(
    `import { EtcdClient, LockManager } from 'etcd-v2-lock';
    const locks = new LockManager(new EtcdClient({ endpoints: '${inject('etcd')}', proxyFromEnvironment: true }));
    await locks.request('${freshName()}', () => {});`,
    { HTTP_PROXY: proxy.url, http_proxy: proxy.url, NO_PROXY: '', no_proxy: '' },
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(proxy.asked.length).toBeGreaterThan(0);
});

test('a client behind a proxy fails over to a member without one', async () => {
  const proxy = await useConnectProxy();
  proxy.answer(503);
  useVariables({ HTTPS_PROXY: proxy.url, NO_PROXY: '127.0.0.1' });
  const endpoints = ['https://etcd.invalid:2379', inject('etcd')];
  const locks = useLocks({ endpoints, randomizeEndpoints: false });
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
  expect(proxy.asked).not.toEqual([]);
  expect(await rejection(useLocks({ endpoints: 'https://etcd.invalid:2379' }).acquire(freshName()))).toBeInstanceOf(
    EtcdConnectionFailed,
  );
});

describe('with a flag, through a proxy,', () => {
  const asRunsOn = (proxy: string) => ({ HTTP_PROXY: proxy, http_proxy: proxy, NO_PROXY: '', no_proxy: '' });

  test.each(['before', 'after'])('commands reach etcd, with the flag %s their name', async (where) => {
    const proxy = await useConnectProxy();
    const flags = ['--proxy-from-environment', '--endpoints', inject('etcd')];
    const args = where === 'before' ? [...flags, 'ls', freshName()] : ['ls', ...flags, freshName()];
    expect(await runCli(args, asRunsOn(proxy.url))).toEqual({ code: 0, signal: null, stdout: '', stderr: '' });
    expect(proxy.asked.length).toBeGreaterThan(0);
  });

  test('a bad variable is an invalid value, without a request', async () => {
    const { code, stderr } = await runCli(['ls', '--proxy-from-environment'], asRunsOn('http://app:sesame@proxy:port'));
    expect({ code, stderr }).toMatchObject({ code: 64, stderr: expect.stringContaining('must be the URL of a proxy') });
    expect(stderr).not.toContain('sesame');
  });

  test('a bridge reaches etcd, and its clients reach it without one', async () => {
    const proxy = await useConnectProxy();
    useVariables({ HTTP_PROXY: proxy.url });
    const bridge = await Bridge.start({ endpoints: inject('etcd'), proxyFromEnvironment: true, followMembers: true });
    onTestFinished(() => bridge.stop());
    const locks = useLocks({ endpoints: bridge.url, proxyFromEnvironment: false });
    expect(await locks.request(freshName(), () => 'held')).toBe('held');
    expect(new Set(proxy.asked.map(({ target }) => target))).toEqual(new Set([new URL(inject('etcd')).host]));
  });
});
