import { expect, inject, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { lockByEtcdctl } from '../support/etcdctl.mjs';
import { next, untilFinished } from '../support/iterators.ts';
import { freshName } from '../support/locks.ts';

test('a holder by `etcdctl lock`, which is Go’s Mutex, is a leader without a value', async () => {
  const name = freshName();
  const client = new V3Client({ endpoints: inject('etcd') });
  onTestFinished(() => client.close());
  const election = new LockManager(client).elect(name, { value: 'node' });
  const go = lockByEtcdctl(`/_locks/${name}`, { endpoints: [inject('etcd')], ttl: 10 });
  onTestFinished(() => go.kill());
  const { key, token } = await go.held;
  const leaders = election.observe({ signal: untilFinished() });
  const leader = { name, key, uuid: '', identity: undefined, label: undefined, value: undefined, own: false };
  expect(await next(leaders)).toEqual(leader);
  expect(await election.leader()).toEqual(leader);
  const campaign = election.campaign();
  const elected = next(campaign);
  await go.release();
  expect((await elected).fencingToken).toBeGreaterThan(token);
  // If Go released the lock before this process had queued up, nobody led in between.
  expect((await next(leaders)) ?? (await next(leaders))).toMatchObject({ value: 'node', own: true });
  await campaign.return();
  expect(await election.leader()).toBeUndefined();
});
