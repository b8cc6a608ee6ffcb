import { describe, expect, test, vi } from 'vitest';
import { Deadline } from '../../../src/base/time.ts';
import { EtcdConnectionFailed, EtcdLockExpired } from '../../../src/errors.ts';
import type { TicketOptions } from '../../../src/recipe/store.ts';
import type { Json } from '../../../src/v3/gateway/messages.ts';
import { base64 } from '../../support/gateway.ts';
import { ScriptedGateway } from '../../support/scripted-gateway.ts';
import { useStillClock } from '../../support/still-clock.ts';

/** Seconds. */
const TTL = 30;

const pass = (seconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(seconds * 1000);

/** A ticket in the queue of a scripted gateway, on a clock that only the test moves. */
function setUp(options: TicketOptions = {}) {
  useStillClock();
  const gateway = new ScriptedGateway();
  gateway.clock = () => performance.now();
  const client = gateway.client();
  const ticket = client.store.queue('job').ticket('mine', options);
  const enter = (ttl: number | null = TTL, keepAlive = true) => ticket.enter(ttl, { failed: 0, keepAlive });
  /** The paths of the requests since the last call. */
  const asked = (): readonly string[] => gateway.asked.splice(0).map(({ path }) => path);
  return { gateway, client, ticket, enter, asked };
}

describe('entering the queue', () => {
  test('creates a lease and appends an entry with it', async () => {
    const { gateway, enter, asked } = setUp();
    expect(await enter()).toMatchObject({ granted: TTL, rank: 11n });
    const [grant] = gateway.asked;
    expect(gateway.own?.lease).toBe(grant?.message['ID']);
    expect(asked()).toEqual(['/lease/grant', '/kv/txn']);
  });

  test('again keeps the lease alive, and counts from then', async () => {
    const { enter, asked } = setUp();
    const first = await enter();
    asked();
    await pass(5);
    const again = await enter();
    expect(asked()).toEqual(['/lease/keepalive', '/kv/txn']);
    expect(again).toMatchObject({ key: first?.key, rank: first?.rank, granted: TTL });
    expect(again?.sentAt).toBeCloseTo((first?.sentAt ?? 0) + 5000);
  });

  test.each<[string, number | null, boolean]>([
    ['another TTL', 60, true],
    ['no renewals any more, because others renew the lease that it has', TTL, false],
    ['no TTL', null, false],
  ])('again with %s moves the entry to another lease, and keeps its rank', async (_, ttl, keepAlive) => {
    const { gateway, enter } = setUp();
    const first = await enter();
    const { lease } = gateway.own ?? expect.unreachable();
    expect(await enter(ttl, keepAlive)).toMatchObject({ key: first?.key, rank: first?.rank, granted: ttl });
    expect(gateway.own?.lease).not.toBe(lease);
    expect(gateway.own?.create_revision).toBe('11');
  });

  test('renews the lease of another entry before it uses it, once a third of the TTL has passed', async () => {
    const { client, enter, asked } = setUp();
    await enter();
    const enterNext = (value: string) =>
      client.store.queue('other').ticket(value).enter(TTL, { failed: 0, keepAlive: true });
    asked();
    await pass(TTL / 3 - 0.1);
    await enterNext('a');
    expect(asked()).toEqual(['/kv/txn']);
    await pass(0.2);
    expect((await enterNext('b'))?.sentAt).toBeCloseTo(performance.now());
    expect(asked().filter((path) => path === '/lease/keepalive')).toHaveLength(1);
  });

  test('creates another lease once the TTL of the last one has passed', async () => {
    const { gateway, client, enter } = setUp();
    await enter();
    const { lease } = gateway.own ?? expect.unreachable();
    await pass(TTL);
    await client.store.queue('other').ticket('a').enter(TTL, { failed: 0, keepAlive: true });
    expect(gateway.own?.lease).not.toBe(lease);
  });
});

describe('a lease of one entry', () => {
  /** Enters and leaves with an entry that is not renewed. */
  async function useOnce() {
    const set = setUp();
    const enter = (ttl = TTL, value = 'mine') =>
      set.client.store.queue('job').ticket(value).enter(ttl, { failed: 0, keepAlive: false });
    await set.enter(TTL, false);
    const lease = set.gateway.own?.lease ?? expect.unreachable();
    await set.ticket.leave();
    set.asked();
    return { ...set, enter, lease };
  }

  test('serves the next entry with its TTL, which counts from a keep-alive', async () => {
    const { gateway, enter, asked, lease } = await useOnce();
    await pass(5);
    const sentAt = performance.now();
    expect(await enter()).toMatchObject({ granted: TTL, sentAt });
    expect(gateway.own?.lease).toBe(lease);
    expect(asked()).toEqual(['/lease/keepalive', '/kv/txn']);
  });

  test('does not serve two entries at once, or one with another TTL', async () => {
    const { enter, asked } = await useOnce();
    await enter(60);
    expect(asked()).toEqual(['/lease/grant', '/kv/txn']);
    await enter(TTL, 'one');
    await enter(TTL, 'two');
    expect(asked()).toEqual(['/lease/keepalive', '/kv/txn', '/lease/grant', '/kv/txn']);
  });

  test('is created anew if etcd has ended it, or once its TTL has passed', async () => {
    const { gateway, enter, asked } = await useOnce();
    gateway.ttl = '0';
    await enter();
    expect(asked()).toEqual(['/lease/keepalive', '/lease/grant', '/kv/txn']);
    const next = await useOnce();
    await pass(TTL);
    await next.enter();
    expect(next.asked()).toEqual(['/lease/grant', '/kv/txn']);
  });

  test('does not count if the leader changed before the append: the next try renews it', async () => {
    const { gateway, client, asked } = await useOnce();
    const ticket = client.store.queue('job').ticket('mine');
    const enter = () => ticket.enter(TTL, { failed: 0, keepAlive: false });
    gateway.onAsked = ({ path }) => {
      if (path === '/kv/txn') gateway.raftTerm = '2';
    };
    await expect(enter()).rejects.toThrow('the leader changed');
    await pass(1);
    asked();
    const sentAt = performance.now();
    expect(await enter()).toMatchObject({ granted: TTL, sentAt });
    expect(asked()).toEqual(['/lease/keepalive', '/kv/txn']);
  });

  test('is revoked after an append whose answer was lost', async () => {
    const { gateway, client, ticket, asked } = setUp();
    gateway.onAsked = ({ path }) => {
      if (path === '/kv/txn') refuse();
    };
    await expect(ticket.enter(TTL, { failed: 0, keepAlive: false })).rejects.toThrow('refused');
    gateway.onAsked = () => {};
    await ticket.leave();
    expect(asked()).toEqual(['/lease/grant', '/kv/txn', '/kv/range', '/kv/lease/revoke']);
    await client.store.queue('job').ticket('next').enter(TTL, { failed: 0, keepAlive: false });
    expect(asked()).toEqual(['/lease/grant', '/kv/txn']);
  });

  test('is revoked if it is one of more than 64, and when the client is closed', async () => {
    const { client, asked } = setUp();
    const tickets = Array.from({ length: 65 }, (_, i) => client.store.queue('job').ticket(`${i}`));
    for (const ticket of tickets) await ticket.enter(TTL, { failed: 0, keepAlive: false });
    for (const ticket of tickets) await ticket.leave();
    const revoked = () => asked().filter((path) => path === '/kv/lease/revoke').length;
    expect(revoked()).toBe(1);
    await client.close();
    expect(revoked()).toBe(64);
  });
});

describe('the fencing token', () => {
  test('is the revision of the answer that has shown the hold, and stays during the hold', async () => {
    const { gateway, ticket, enter } = setUp();
    await enter();
    gateway.revision = 40n;
    // The answer to the append shows the hold.
    expect((await ticket.standing({})).fencingToken).toBe(11n);
    gateway.revision = 50n;
    expect((await ticket.standing({})).fencingToken).toBe(11n);
    expect(ticket.fencingTokens).toEqual({ v3: 11n });
  });

  test('of a later hold of the same ticket is greater', async () => {
    const { gateway, ticket, enter } = setUp();
    await enter();
    const { fencingToken: first } = await ticket.standing({});
    await ticket.leave();
    expect(gateway.own).toBeUndefined();
    await enter();
    const { fencingToken: second } = await ticket.standing({});
    expect(second).toBeGreaterThan(first);
    expect(ticket.fencingTokens).toEqual({ v3: second });
  });

  test('of a later hold with the same entry is greater, too', async () => {
    const { gateway, ticket, enter } = setUp();
    await enter();
    const { fencingToken: first } = await ticket.standing({});
    const { own } = gateway;
    await ticket.leave();
    // As if a member of another cluster had answered the removal.
    gateway.own = own;
    gateway.revision = 40n;
    await ticket.find();
    expect((await ticket.standing({})).fencingToken).toBe(40n);
    expect(first).toBeLessThan(40n);
  });
});

describe('the watch of a held entry', () => {
  test('begins at the revision after the read that has shown the entry, and a deletion is reported as a loss', async () => {
    const { gateway, ticket, enter } = setUp();
    await enter();
    await ticket.standing({});
    const onLost = vi.fn();
    ticket.watch?.(onLost);
    gateway.revision = 40n;
    gateway.onAsked = () => {
      // Other clients write all the time.
      gateway.revision += 1n;
    };
    await pass(0.5);
    const [watch] = gateway.watches;
    const { key } = gateway.own ?? expect.unreachable();
    const message = watch?.messages[0]?.['create_request'] as Json;
    expect(message).toEqual({ key: base64(key), start_revision: '42', filters: ['NOPUT'] });
    gateway.own = undefined;
    watch?.say(
      JSON.stringify({ result: { events: [{ type: 'DELETE', kv: { key: base64(key), mod_revision: '42' } }] } }),
    );
    await pass(0);
    expect(onLost.mock.calls).toEqual([[expect.any(EtcdLockExpired)]]);
  });

  test('does not begin for a hold that ends before', async () => {
    const { gateway, ticket, enter } = setUp();
    await enter();
    const end = ticket.watch?.(() => expect.unreachable());
    await pass(0.2);
    end?.();
    await pass(1);
    expect(gateway.watches).toEqual([]);
  });
});

describe('leaving the queue', () => {
  test.each([
    ['compares the entry, because another ticket may have its key', false, '/kv/txn'],
    ['needs no comparison if no other ticket ever has its key', true, '/kv/deleterange'],
  ])('%s', async (_, isSingleUse, path) => {
    const { gateway, ticket, enter, asked } = setUp({ isSingleUse });
    await enter();
    asked();
    await ticket.leave();
    expect(asked()).toEqual([path]);
    expect(gateway.own).toBeUndefined();
  });

  test('compares the entry even then, once it may have expired', async () => {
    const { ticket, enter, asked } = setUp({ isSingleUse: true });
    await enter();
    asked();
    await pass(TTL);
    await ticket.leave();
    expect(asked()[0]).toBe('/kv/txn');
  });

  test('until a deadline keeps the entry until then, even if its removal has failed before', async () => {
    const { gateway, ticket, enter } = setUp();
    await enter();
    gateway.onAsked = refuse;
    await expect(ticket.leave()).rejects.toThrow('refused');
    gateway.onAsked = () => {};
    await ticket.leave({ until: Deadline.after(10) });
    const { lease } = gateway.own ?? expect.unreachable();
    await pass(9);
    expect(gateway.own).toMatchObject({ lease, create_revision: '11' });
  });

  test('without a deadline removes the entry, even if it was to expire before', async () => {
    const { gateway, ticket, enter, asked } = setUp();
    await enter();
    gateway.onAsked = refuse;
    await expect(ticket.leave({ until: Deadline.after(10) })).rejects.toThrow('refused');
    gateway.onAsked = () => {};
    asked();
    await ticket.leave();
    expect(asked()).toEqual(['/kv/txn']);
    expect(gateway.own).toBeUndefined();
  });

  test('until a deadline removes what an unanswered append may have created', async () => {
    const { gateway, ticket, enter, asked } = setUp();
    gateway.onAsked = ({ path }) => {
      if (path === '/kv/txn') refuse();
    };
    await expect(enter()).rejects.toThrow('refused');
    gateway.onAsked = () => {};
    asked();
    await ticket.leave({ until: Deadline.after(10) });
    expect(asked()).toEqual(['/kv/range', '/kv/lease/revoke']);
  });
});

function refuse(): never {
  throw new EtcdConnectionFailed('refused', { outcomeUnknown: true });
}
