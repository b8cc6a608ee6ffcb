// `acquire` that holds the lock, but hands out no handle.
import { once } from 'node:events';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { ignore } from '../../../src/base/cancellation.ts';
import { type EtcdApi, LockManager } from '../../../src/index.ts';
import { ttlsOf, untilKeys, useEtcdClient } from '../../support/both.ts';
import { startCli } from '../../support/cli.ts';
import { recentTtl, useProxy } from '../../support/locks.ts';
import type { EtcdProxy, ProxiedRequest } from '../../support/proxy.ts';
import { ask, askJson, useLockName } from '../../support/queues.ts';
import { runInShell } from '../../support/shell.ts';

const APIS: readonly EtcdApi[] = ['v2', 'v3', 'both'];
const TTL = '600';

/** What sets the TTL of the hold. */
const isSetting = ({ method, path, body }: ProxiedRequest): boolean =>
  (method === 'PUT' && body.includes(`ttl=${TTL}`)) ||
  (path.endsWith('/lease/grant') && body.includes(`"TTL":"${TTL}"`));
const isRead = ({ method, path }: ProxiedRequest): boolean => method === 'GET' || path.endsWith('/kv/range');

/** Starts `acquire`; the end of the test kills it. Nobody reads its output unless the test does. */
function startAcquire(api: EtcdApi, name: string, etcd = inject('etcd')) {
  const { process: child, result } = startCli(['--api', api, 'acquire', name, '--ttl', TTL], { ETCD_ENDPOINTS: etcd });
  // Also rejects if the output is closed.
  result.catch(ignore);
  onTestFinished(async () => {
    if (child.kill('SIGKILL')) await once(child, 'exit');
  });
  return { child, result };
}

interface Killing {
  readonly api: EtcdApi;
  readonly name: string;
  readonly proxy: EtcdProxy;
}

/** Kills `acquire` when it has sent such a request, which gets no answer. */
async function killAt(isIt: (request: ProxiedRequest) => boolean, { api, name, proxy }: Killing): Promise<void> {
  proxy.intercept((request) => (isIt(request) ? { silent: true } : undefined));
  const isSent = proxy.next(isIt, 'arrived');
  const { child, result } = startAcquire(api, name, proxy.url);
  await isSent;
  child.kill('SIGKILL');
  expect(await result).toMatchObject({ signal: 'SIGKILL', stdout: '' });
}

/** Expects that the lock has one entry in each store, with this TTL. */
async function expectLeft(api: EtcdApi, name: string, ttl: number): Promise<void> {
  expect(await ttlsOf(name)).toEqual((api === 'both' ? [ttl, ttl] : [ttl]).map(recentTtl));
}

/** Removes the entries of a lock as the documentation says. */
async function remove(api: EtcdApi, name: string): Promise<void> {
  for (const store of api === 'both' ? ['v3', 'v2'] : [api]) {
    const lock = await askJson<{ entries: { uuid: string }[] }>(['--api', store, 'inspect', name]);
    const uuid = lock.entries[0]?.uuid ?? '';
    const removal = await ask(['--api', store, 'release', name, '--uuid', uuid, '--force']);
    expect(removal).toMatchObject({ code: 0, stdout: expect.stringContaining('removed.') });
  }
  await untilKeys(name, 0, 0);
}

describe.each(APIS)('on %s, acquire that holds the lock', (api) => {
  test('and is killed before it sets the TTL leaves an entry for the TTL of a waiter', async () => {
    const [name, proxy] = [useLockName(), await useProxy()];
    await killAt(isSetting, { api, name, proxy });
    await expectLeft(api, name, 30);
  });

  test('and is killed before it prints the handle leaves an entry for the whole TTL', async () => {
    const [name, proxy] = [useLockName(), await useProxy()];
    const isCheck = (request: ProxiedRequest): boolean =>
      isRead(request) && proxy.requests.filter(isSetting).length === (api === 'both' ? 2 : 1);
    await killAt(isCheck, { api, name, proxy });
    await expectLeft(api, name, Number(TTL));
    expect(await ask(['--api', api, 'acquire', name, '--ttl', TTL, '--if-available'])).toMatchObject({ code: 1 });
    await remove(api, name);
  });

  test('but whose reader is gone removes its entry, and says so', async () => {
    const name = useLockName();
    const before = await new LockManager(useEtcdClient({ api })).acquire(name);
    const { child } = startAcquire(api, name);
    let complaint = '';
    child.stderr.on('data', (chunk) => {
      complaint += chunk;
    });
    const end = once(child, 'close');
    child.stdout.destroy();
    await once(child.stdout, 'close');
    await before.release();
    expect(await end).toEqual([125, null]);
    expect(complaint).toMatch(/was removed again: its handle could not be printed: write EPIPE\n$/);
    await untilKeys(name, 0, 0);
  });
});

test('acquire whose output is on a full disk removes its entry', async () => {
  const name = useLockName();
  const env = { ETCD_ENDPOINTS: inject('etcd') };
  for (const flag of ['', '--json']) {
    const script = `etcd-v2-lock acquire ${name} --ttl ${TTL} ${flag} > /dev/full || echo "exit $?"`;
    const { stdout, stderr } = await runInShell(script, env);
    expect(stdout).toBe('exit 125\n');
    expect(stderr).toMatch(/its handle could not be printed: ENOSPC: no space left on device, write\n$/);
    await untilKeys(name, 0, 0);
  }
});
