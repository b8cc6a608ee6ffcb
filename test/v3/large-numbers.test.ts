import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../src/client.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { base64, entriesBelow, gateway } from '../support/gateway.ts';
import { freshName } from '../support/locks.ts';
import { useShiftedRevisions } from '../support/shifted-revisions.ts';
import { until } from '../support/until.ts';

const untilQueued = (name: string, count: number) =>
  until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === count,
  );

/** A manager of its own client. */
function useLocks(endpoints: string): LockManager {
  const client = new EtcdClient({ api: 'v3', endpoints });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  return new LockManager(client, { ttl: 9 });
}

test.each([
  ['2^53', 2n ** 53n - 3n],
  // As far as other tests on the same etcd leave room.
  ['2^63', 2n ** 63n - 1n - 1_000_000n],
])('near revision %s the order, the tokens and the renewals of a lock are exact', async (_, shifted) => {
  const etcd = await useShiftedRevisions(shifted);
  const name = freshName();
  const held = await useLocks(etcd).acquire(name);
  const acquired: string[] = [];
  const waiters: Promise<bigint>[] = [];
  for (let i = 0; i < 4; i += 1) {
    const waiter = useLocks(etcd).acquire(name);
    waiters.push(
      waiter.then(async (next) => {
        acquired.push(next.key);
        await next.release();
        return next.fencingToken;
      }),
    );
    await untilQueued(name, i + 2);
  }
  const [own, ...waiting] = await entriesBelow(`/_locks/${name}/`);
  // The token of a lock that was free is the revision at which its key was created.
  expect(held.fencingToken).toBe((own?.rank ?? 0n) + shifted);
  expect(held.toJSON()).toMatchObject({ fencingToken: String(held.fencingToken) });
  const left = held.expiresIn();
  await until(
    () => held.expiresIn(),
    (seconds) => seconds > left,
  );
  await held.release();
  const tokens = [held.fencingToken, ...(await Promise.all(waiters))];
  expect(acquired).toEqual(waiting.map(({ key }) => key));
  for (const [i, token] of tokens.slice(1).entries()) expect(token).toBeGreaterThan(tokens[i] ?? token);
  expect(await entriesBelow(`/_locks/${name}/`)).toEqual([]);
});

test.each(['9007199254740993', '9223372036854775807'])(
  'lease %s of another program is read and waited for',
  async (ID) => {
    const name = freshName();
    const key = `/_locks/${name}/${BigInt(ID).toString(16)}`;
    await gateway('/lease/grant', { ID, TTL: '60' });
    onTestFinished(async () => {
      await gateway('/lease/revoke', { ID });
    });
    await gateway('/kv/put', { key: base64(key), lease: ID });
    const locks = useLocks(inject('etcd'));
    const { held } = await locks.query(name);
    expect(held).toMatchObject([{ key }]);
    expect(held[0]?.ttl).toBeGreaterThan(30);
    const waiting = locks.acquire(name);
    await untilQueued(name, 2);
    await gateway('/lease/revoke', { ID });
    expect(await (await waiting).release()).toBe(true);
  },
);
