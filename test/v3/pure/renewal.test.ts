import { describe, expect, test } from 'vitest';
import { EtcdClusterIdChanged, EtcdConnectionFailed, EtcdLockExpired } from '../../../src/errors.ts';
import { rejection } from '../../support/clients.ts';
import { ScriptedGateway, type StoredKey } from '../../support/scripted-gateway.ts';

/** Seconds. */
const TTL = 30;

/** An entry in the queue of a scripted gateway, and the renewal of its ticket. */
async function setUp({ keepAlive = true } = {}) {
  const gateway = new ScriptedGateway();
  const ticket = gateway.client().store.queue('job').ticket('mine');
  const own = await ticket.enter(TTL, { failed: 0, keepAlive });
  const { key } = own ?? expect.unreachable();
  gateway.asked.length = 0;
  return { gateway, ticket, key, renew: () => ticket.renew({ timeout: 5 }) };
}

describe('the renewal of an entry on etcd v3', () => {
  test('is one keep-alive and one read of the key', async () => {
    const { gateway, key, renew } = await setUp();
    expect(await renew()).toMatchObject({ key, granted: TTL });
    expect(gateway.paths).toEqual(['/lease/keepalive', '/kv/txn']);
  });

  test('counts the TTL from when the keep-alive was sent, also for a second one', async () => {
    const { ticket, renew } = await setUp();
    // The grant was sent at 1 ms, the append at 2 ms; then each renewal sends two requests.
    expect(ticket.last).toMatchObject({ sentAt: 1, granted: TTL });
    for (const sentAt of [3, 5]) {
      expect(await renew()).toMatchObject({ sentAt, granted: TTL });
      expect(ticket.last).toMatchObject({ sentAt, granted: TTL });
    }
  });

  test('counts the TTL that etcd has granted', async () => {
    const { gateway, renew } = await setUp();
    gateway.ttl = '8';
    expect(await renew()).toMatchObject({ granted: 8 });
  });

  test('reports that the lease has ended if the keep-alive says so, even if the key is still there', async () => {
    const { gateway, renew } = await setUp();
    gateway.ttl = '0';
    const error = await rejection(renew(), EtcdLockExpired);
    expect(error.message).toContain('its lease has ended');
    expect(error.isEndedByStore).toBe(true);
  });

  test.each<[string, (own: StoredKey) => StoredKey | undefined, string]>([
    ['is gone', () => undefined, 'its key is gone'],
    ['was created again', (own) => ({ ...own, create_revision: '99', mod_revision: '99' }), 're-created'],
    ['has another value', (own) => ({ ...own, value: 'not mine' }), 'another value'],
    ['has another lease', (own) => ({ ...own, lease: '7' }), 'another lease'],
    ['has no lease', ({ lease: _, ...own }) => own, 'another lease'],
  ])('reports that the key %s, although the lease is alive', async (_, change, message) => {
    const { gateway, renew } = await setUp();
    gateway.own = gateway.own && change(gateway.own);
    const error = await rejection(renew(), EtcdLockExpired);
    expect(error.message).toContain(message);
    expect(error.isEndedByStore).toBe(false);
    // Nothing was written.
    expect(gateway.paths).toEqual(['/lease/keepalive', '/kv/txn']);
  });

  test('fails, and extends nothing, if another leader answers the read: the first one may have been replaced', async () => {
    const { gateway, ticket, renew } = await setUp();
    const before = ticket.last;
    gateway.onAsked = ({ path }) => {
      gateway.raftTerm = path === '/kv/txn' ? '2' : '1';
    };
    expect((await rejection(renew(), EtcdConnectionFailed)).message).toContain('the leader changed');
    expect(ticket.last).toEqual(before);
  });

  test.each([
    ['the read', ['/kv/txn']],
    ['both requests', ['/kv/txn', '/lease/keepalive']],
  ])('reports that another cluster has answered %s', async (_, paths) => {
    const { gateway, renew } = await setUp();
    const { clusterId } = gateway;
    gateway.onAsked = ({ path }) => {
      gateway.clusterId = paths.includes(path) ? '9' : clusterId;
    };
    await rejection(renew(), EtcdClusterIdChanged);
  });
});
