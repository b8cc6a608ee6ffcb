import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, onTestFinished, test, vi } from 'vitest';
import { EtcdClusterIdChanged, EtcdLockLost } from '../../../src/errors.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { Lock } from '../../../src/python/lock.ts';
import { V3Client } from '../../../src/v3/client.ts';
import { useAlteredMember } from '../../support/altered-member.ts';
import { gate } from '../../support/gate.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName, useProxy } from '../../support/locks.ts';
import { startProxy } from '../../support/proxy.ts';
import { useStillClock } from '../../support/still-clock.ts';
import { until } from '../../support/until.ts';

function useV3(endpoints = inject('etcd')): V3Client {
  const client = new V3Client({ endpoints });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return client;
}

const untilGone = (name: string) =>
  until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 0,
  );

test('an entry that nobody renews expires, although another entry with its TTL is kept alive', async () => {
  const client = useV3();
  const kept = await new LockManager(client, { ttl: 6 }).acquire(freshName());
  const name = freshName();
  await new Lock(client, name).acquire({ lockTtl: 6 });
  await untilGone(name);
  kept.assertHeld();
  await kept.release();
});

test('a hold is lost at the next renewal if its key was written again without the lease', async () => {
  const name = freshName();
  const held = await new LockManager(useV3(), { ttl: 6 }).acquire(name);
  const [key, value] = [held.key, `${(await entriesBelow(`/_locks/${name}/`))[0]?.value}`];
  await gateway('/kv/put', { key: base64(key), value: base64(value) });
  await until(
    () => held.signal.aborted,
    (aborted) => aborted,
  );
  expect(String(held.signal.reason.message)).toContain('with another lease');
  expect(await held.release()).toBe(false);
});

test('the key of a hold that may have expired is not removed if somebody else has written it', async () => {
  const [proxy, name] = [await useProxy(), freshName()];
  const client = useV3(proxy.url);
  const held = await new LockManager(client, { ttl: 2 }).acquire(name);
  const allow = proxy.intercept(() => ({ swallow: true }));
  await until(
    () => held.signal.aborted,
    (aborted) => aborted,
  );
  await untilGone(name);
  await gateway('/kv/put', { key: base64(held.key), value: base64('somebody else') });
  allow();
  expect(await held.release()).toBe(false);
  await client.close();
  expect(await entriesBelow(`/_locks/${name}/`)).toMatchObject([{ key: held.key, value: 'somebody else' }]);
});

test('a hold is lost with EtcdClusterIdChanged as the cause if another cluster answers that there is no such lease', async () => {
  const other = await useAlteredMember((asked, { body }) =>
    asked === 'POST /v3/lease/keepalive'
      ? { body: body.replace(/"cluster_id":"\d+"/, '"cluster_id":"1"').replace(/,"TTL":"\d+"/, '') }
      : undefined,
  );
  const held = await new LockManager(useV3(other), { ttl: 6 }).acquire(freshName());
  await until(
    () => held.signal.aborted,
    (aborted) => aborted,
  );
  expect(held.signal.reason.cause).toBeInstanceOf(EtcdClusterIdChanged);
});

test('entries that are newer than the renewal under way all wait for the same one after it', async () => {
  useStillClock();
  const proxy = await startProxy(inject('etcd'));
  onTestFinished(() => proxy.stop());
  const lease = useV3(proxy.url).leases.shared(60);
  const renewals = () => proxy.requests.filter(({ path }) => path === '/v3/lease/keepalive').length;
  const renew = () => {
    const user = { key: `/_locks/${freshName()}/1`, onExpired: () => {} };
    lease.add(user);
    return lease.renew(user, { timeout: 60 });
  };
  await lease.prepare({});
  const answer = gate();
  const remove = proxy.intercept(({ path }) =>
    path === '/v3/lease/keepalive' ? { answerAfter: answer.opened } : undefined,
  );
  const first = renew();
  await until(renewals, (count) => count === 1);
  const later = Array.from({ length: 20 }, renew);
  remove();
  // The later renewal begins later.
  await vi.advanceTimersByTimeAsync(1);
  answer.open();
  const [earlier, ...shared] = await Promise.all([first, ...later]);
  expect(renewals()).toBe(2);
  expect(new Set(shared).size).toBe(1);
  expect(shared[0]?.sentAt).toBeGreaterThan(earlier.sentAt);
});

test('the entry of a hold that is over, but whose callback continues, ends though other holds keep its lease alive', async () => {
  const [name, other] = [freshName(), freshName()];
  const locks = new LockManager(useV3(), { ttl: 6 });
  const kept = await locks.acquire(other);
  const [begun, over] = [gate(), gate()];
  const callback = () => (begun.open(), over.opened);
  const hanging = locks.request(name, { maxHold: 0.5 }, callback).catch((error: unknown) => error);
  await begun.opened;
  const next = await new LockManager(useV3(), { ttl: 6 }).acquire(name, { timeout: 60 });
  kept.assertHeld();
  await next.release();
  over.open();
  expect(await hanging).toBeInstanceOf(EtcdLockLost);
  await kept.release();
});

test('an entry that nobody renews is not read by the renewals of the others', async () => {
  const lease = useV3().leases.shared(6);
  const expired = vi.fn();
  const [idle, busy] = [
    { key: `/_locks/${freshName()}/1`, onExpired: expired },
    { key: `/_locks/${freshName()}/1`, onExpired: () => expect.unreachable() },
  ];
  lease.add(idle);
  lease.add(busy);
  await lease.prepare({});
  while (expired.mock.calls.length === 0) await lease.renew(busy, { timeout: 10 });
  lease.remove(idle);
  await lease.renew(busy, { timeout: 10 });
  lease.remove(busy);
});

test('an entry whose renewals are always answered by those of another entry does not expire', async () => {
  const lease = useV3().leases.shared(4);
  const user = () => ({ key: `/_locks/${freshName()}/1`, onExpired: vi.fn() });
  const [first, second] = [user(), user()];
  lease.add(first);
  lease.add(second);
  await lease.prepare({});
  const start = performance.now();
  let since = lease.sentAt;
  while (performance.now() < start + 2.5 * lease.granted * 1000) {
    await lease.renew(first, { timeout: 10 });
    since = (await lease.renew(second, { timeout: 10 }, since)).sentAt;
    await sleep(300);
  }
  for (const { onExpired } of [first, second]) expect(onExpired).not.toHaveBeenCalled();
  lease.remove(first);
  lease.remove(second);
});

test('a renewal of 250 entries is one keep-alive and one read, which shows which of the entries are gone', async () => {
  useStillClock();
  const proxy = await useProxy();
  const client = useV3(proxy.url);
  const lease = client.leases.shared(30);
  await lease.prepare({});
  const keys = Array.from({ length: 250 }, (_, i) => `/_locks/${freshName()}/${i}`);
  const put = (key: string) => ({ request_put: { key: base64(key), value: base64('id'), lease: lease.id } });
  for (const some of [keys.slice(0, 125), keys.slice(125)]) await gateway('/kv/txn', { success: some.map(put) });
  const gone = [keys[0], keys[100], keys[249]];
  for (const key of gone) await gateway('/kv/deleterange', { key: base64(`${key}`) });
  const before = proxy.requests.length;
  const renewal = await client.requests.leases.renew(lease.id, keys, { timeout: 30 });
  expect(proxy.requests.slice(before).map(({ path }) => path)).toEqual(['/v3/lease/keepalive', '/v3/kv/txn']);
  expect([...renewal.entries.keys()]).toEqual(keys.filter((key) => !gone.includes(key)));
  await client.requests.leases.revoke(lease.id, {});
});

test('a lease that is not needed any more while its grant is under way is ended after the grant', async () => {
  useStillClock();
  const proxy = await useProxy();
  const granted = gate();
  const isGrant = ({ path }: { path: string }): boolean => path.endsWith('/lease/grant');
  proxy.intercept((request) => (isGrant(request) ? { hold: granted.opened } : undefined));
  const arrived = proxy.next(isGrant, 'arrived');
  const lease = useV3(proxy.url).leases.shared(600);
  const preparing = lease.prepare({});
  await arrived;
  lease.retire();
  // Before the grant, etcd would answer that there is no such lease.
  await sleep(300);
  expect(proxy.requests.map(({ path }) => path)).toEqual(['/version', '/v3/lease/grant']);
  granted.open();
  await preparing;
  await until(
    () => gateway('/lease/timetolive', { ID: lease.id }),
    ({ TTL }) => TTL === '-1',
  );
});
