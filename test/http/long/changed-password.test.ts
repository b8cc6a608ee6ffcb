// A password that is changed in etcd while holders and waiters are at work.
import debugOf from 'debug';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ignore } from '../../../src/base/cancellation.ts';
import {
  EtcdClient,
  type EtcdClientOptions,
  EtcdInsufficientPermissions,
  EtcdLockLost,
  LockManager,
} from '../../../src/index.ts';
import { Bridge } from '../../../src/server/bridge/bridge.ts';
import { aborted } from '../../suites/lock/locks.ts';
import { APIS } from '../../support/apis.ts';
import { startEtcd } from '../../support/etcd.ts';
import { freshName, rejection } from '../../support/locks.ts';
import { APP, guard } from '../../support/secured-etcd.ts';
import { guardV3 } from '../../support/secured-v3.ts';
import { until } from '../../support/until.ts';

/** Seconds. */
const TTL = 15;

/** Starts an etcd that asks for a password on each of its APIs. */
async function useGuardedEtcd() {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const guards = [...(etcd.hasV2 ? [await guard(etcd.url)] : []), await guardV3(etcd.url)];
  const changePassword = async (password: string): Promise<void> => {
    for (const one of guards) await one.changePassword(password);
  };
  return { url: etcd.url, changePassword };
}

/** A user whose password is looked up in `vault`. */
function keeper(password: string) {
  const vault = { password, asked: 0, failure: undefined as Error | undefined };
  const ask = async (): Promise<string> => {
    vault.asked += 1;
    if (vault.failure) throw vault.failure;
    return vault.password;
  };
  return { vault, user: { username: APP.username, password: ask } };
}

function useLocks(options: EtcdClientOptions, ttl: number): LockManager {
  const client = new EtcdClient(options);
  onTestFinished(() => client.close({ timeout: 0 }).catch(ignore));
  return new LockManager(client, { ttl });
}

describe.each(APIS)('with api %s', (api) => {
  /** A client asks once for each store. */
  const stores = api === 'both' ? 2 : 1;

  test('a hold is renewed with the new password, whether the function knows it before or after the refusal', async () => {
    const { url, changePassword } = await useGuardedEtcd();
    const { vault, user } = keeper(APP.password);
    // etcd takes much processor time for each password.
    const locks = useLocks({ api, endpoints: url, ...user }, TTL);
    const held = await locks.acquire(freshName());
    expect(vault.asked).toBe(stores);
    await changePassword('second');
    vault.password = 'second';
    await until(
      () => vault.asked,
      (asked) => asked >= 2 * stores,
    );
    // Now the vault learns the password late: the first renewals are refused.
    await changePassword('third');
    const before = vault.asked;
    await until(
      () => vault.asked,
      (asked) => asked >= before + 2,
    );
    vault.password = 'third';
    // Without a renewal since then, the lease would have ended.
    const end = performance.now() + TTL * 1000;
    await until(
      () => performance.now(),
      (time) => time > end,
    );
    held.assertHeld();
    expect(await held.release()).toBe(true);
  });

  test('a waiter gets the lock with the new password', async () => {
    const { url, changePassword } = await useGuardedEtcd();
    const [one, other] = [keeper(APP.password), keeper(APP.password)];
    const name = freshName();
    const owner = await useLocks({ api, endpoints: url, ...one.user }, 30).acquire(name);
    const waiting = useLocks({ api, endpoints: url, ...other.user }, 6).acquire(name);
    await until(
      () => other.vault.asked,
      (asked) => asked >= 1,
    );
    // First the vault: a waiter does not wait until the function knows the new password.
    one.vault.password = 'second';
    other.vault.password = 'second';
    await changePassword('second');
    expect(await owner.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  });

  test('a hold ends in time if the function never gives the new password', async () => {
    const { url, changePassword } = await useGuardedEtcd();
    const { user } = keeper(APP.password);
    const held = await useLocks({ api, endpoints: url, ...user }, 3).acquire(freshName());
    await changePassword('second');
    const loss = await aborted(held.signal);
    expect(loss).toBeInstanceOf(EtcdLockLost);
  });

  test('a wrong password and a function that throws reject at once, with neither password in message or log', async () => {
    const { url } = await useGuardedEtcd();
    debugOf.enable('etcd-v2-lock:*');
    const written = vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
    onTestFinished(() => {
      debugOf.disable();
      written.mockRestore();
    });
    const { vault, user } = keeper('guessed-S3cret');
    const locks = useLocks({ api, endpoints: url, ...user }, 6);
    const refused = await rejection(locks.acquire(freshName()));
    expect(refused).toBeInstanceOf(EtcdInsufficientPermissions);
    expect(refused).toHaveProperty('name', 'EtcdInsufficientPermissions');
    vault.failure = new Error('the vault is sealed');
    const failed = await rejection(locks.acquire(freshName()));
    expect(failed).toBeInstanceOf(EtcdInsufficientPermissions);
    expect(failed).toMatchObject({
      message: expect.stringContaining('the function for the password failed: the vault is sealed'),
      cause: vault.failure,
    });
    const log = written.mock.calls.map(([text]) => String(text)).join('');
    expect(log).toContain('etcd-v2-lock:client');
    for (const text of [String(refused), JSON.stringify(refused), String(failed), log])
      expect(text).not.toMatch(/S3cret|Basic/);
  });

  test('calls at once ask the function once for each store', async () => {
    const { url } = await useGuardedEtcd();
    const { vault, user } = keeper(APP.password);
    const locks = useLocks({ api, endpoints: url, ...user }, 30);
    const holds = await Promise.all(Array.from({ length: 4 }, () => locks.acquire(freshName())));
    expect(vault.asked).toBe(stores);
    await Promise.all(holds.map((held) => held.release()));
  });
});

test('a bridge asks for the password of its own user again', async () => {
  const { url, changePassword } = await useGuardedEtcd();
  const { vault, user } = keeper(APP.password);
  const bridge = await Bridge.start({ endpoints: url, ...user });
  onTestFinished(() => bridge.stop());
  const locks = useLocks({ endpoints: bridge.url }, 6);
  const held = await locks.acquire(freshName());
  await changePassword('second');
  vault.password = 'second';
  const before = vault.asked;
  await until(
    () => vault.asked,
    (asked) => asked > before,
  );
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
  held.assertHeld();
  expect(await held.release()).toBe(true);
});
