import { describe, expect, test } from 'vitest';
import {
  EtcdConnectionFailed,
  EtcdLockExpired,
  EtcdLockLost,
  type Held,
  LockManager,
  type LockManagerOptions,
} from '../../src/index.ts';
import { aborted } from '../suites/lock/locks.ts';
import { gate } from '../support/gate.ts';
import { freshName, queueOn, raw, rejection, untilQueued, useClient, useProxy } from '../support/locks.ts';
import { block, useManager } from '../support/managers.ts';
import type { ProxiedRequest } from '../support/proxy.ts';
import { elapsed, moment } from '../support/stalls/stalls.mjs';
import { until } from '../support/until.ts';

const isRenewal = ({ method }: ProxiedRequest): boolean => method === 'PUT';
const isAppend = ({ method }: ProxiedRequest): boolean => method === 'POST';

/** Acquires a lock through a proxy. */
async function setUp(options: LockManagerOptions) {
  const proxy = await useProxy();
  const name = freshName();
  const held = await useManager(options, { endpoints: proxy.url }).acquire(name);
  const renewals = (): number => proxy.requests.filter((request) => isRenewal(request) && request.status).length;
  return { proxy, name, held, renewals };
}

describe('a hold whose key was changed by hand', () => {
  test.each([
    ['removed', (key: string) => raw('DELETE', key), /key is gone/],
    ['given another value', (key: string) => raw('PUT', key, { value: 'other' }), /has another value/],
    ['removed and created again', (key: string) => recreate(key), /has another value/],
  ])('is lost at the next renewal when the key was %s', async (_, change, why) => {
    // On a busy machine, a renewal of a shorter TTL is sent again before it is answered.
    const { held, renewals } = await setUp({ ttl: 12 });
    await change(held.key);
    const before = renewals();
    expect(await aborted(held.signal)).toBeInstanceOf(EtcdLockLost);
    expect(renewals()).toBeLessThanOrEqual(before + 1);
    expect(held.signal.reason.message).toMatch(why);
    expect(held.signal.reason.cause).toBeInstanceOf(EtcdLockExpired);
    expect(held.expiresIn()).toBe(0);
    expect(() => held.assertHeld()).toThrow(held.signal.reason);
    expect(await held.release()).toBe(false);
  });

  test('is not acquired again, and its release does not affect the next holder', async () => {
    const { proxy, name, held } = await setUp({ ttl: 18 });
    await raw('DELETE', held.key);
    const successor = await useManager({ ttl: 60 }).acquire(name);
    await aborted(held.signal);
    await held.release();
    expect(proxy.requests.filter(isAppend)).toHaveLength(1);
    expect(await queueOn(name)).toMatchObject([{ key: successor.key }]);
    expect(successor.fencingToken).toBeGreaterThan(held.fencingToken);
    expect(await successor.release()).toBe(true);
  });

  test('rejects its request with the loss, but only after the callback has ended', async () => {
    const name = freshName();
    const [lost, done] = [gate(), gate()];
    let ended = false;
    const request = rejection(
      useManager({ ttl: 3 }).request(name, async ({ key, signal }) => {
        await raw('DELETE', key);
        await aborted(signal);
        lost.open();
        await done.opened;
      }),
    ).finally(() => {
      ended = true;
    });
    await lost.opened;
    expect(await queueOn(name)).toEqual([]);
    expect(ended).toBe(false);
    done.open();
    expect(await request).toBeInstanceOf(EtcdLockLost);
  });

  async function recreate(key: string) {
    await raw('DELETE', key);
    return raw('PUT', key, { value: 'other', ttl: '60' });
  }
});

describe('a hold that cannot be renewed', () => {
  test.each(['silent', 'refuse'] as const)('is lost while its key still exists: %s', async (fault) => {
    // The expiry comes seconds after the deadline, so that even a busy machine reads the key in between.
    const { proxy, held } = await setUp({ ttl: 10, margin: 4 });
    const all = fault === 'silent' ? { silent: true as const } : { refuse: true as const };
    const from = moment();
    const off = proxy.intercept(() => all);
    const reason = await aborted(held.signal);
    const to = moment();
    const stalled = to.at - from.at - elapsed(from, to);
    const { body } = await raw('GET', held.key);
    expect(body.node).toMatchObject({ key: held.key, ttl: expect.any(Number) });
    expect(reason).toBeInstanceOf(EtcdLockLost);
    expect(reason).toMatchObject({
      message: expect.stringContaining('was not renewed in time'),
      cause: { cause: expect.any(EtcdConnectionFailed) },
    });
    // The renewal fails 50 ms before the deadline, but later if the event loop was blocked.
    const failure = { endpoint: proxy.url, error: expect.any(EtcdConnectionFailed) };
    for (const { failures } of [held.signal.reason, held.signal.reason.cause])
      expect(failures).toEqual(stalled < 50 || failures.length > 0 ? expect.arrayContaining([failure]) : []);
    expect(held.expiresIn()).toBe(0);
    off();
    expect(await held.release()).toBe(false);
  });

  test('counts its validity from the moment its write was sent, however late the answer comes', async () => {
    const client = useClient();
    const name = freshName();
    const { opened, open } = gate();
    const createInOrder = client.createInOrder.bind(client);
    client.createInOrder = async (...args) => {
      const change = await createInOrder(...args);
      await opened;
      return change;
    };
    const acquiring = new LockManager(client, { ttl: 60, margin: 1 }).acquire(name);
    await untilQueued(name, 1);
    // Delays the answer by two seconds, long before the first renewal is due.
    const [own] = await until(
      () => queueOn(name),
      ([entry]) => (entry?.ttl ?? 0) <= 58,
    );
    open();
    const held = await acquiring;
    expect(held.expiresIn()).toBeLessThanOrEqual((own?.ttl ?? 0) - 1);
    await held.release();
  });
});

describe('a hold whose deadline passed while the event loop was blocked', () => {
  test('is reported as lost by the first check, before any timer fires', async () => {
    const held = await useManager({ ttl: 2 }).acquire(freshName());
    held.assertHeld();
    block(2);
    expect(held.signal.aborted).toBe(false);
    expect(() => held.assertHeld()).toThrow(EtcdLockLost);
    expect(held.signal.aborted).toBe(true);
    expect(held.expiresIn()).toBe(0);
    await held.release();
  });

  test.each([
    ['expiresIn()', (held: Held) => expect(held.expiresIn()).toBe(0)],
    ['the end of the callback', () => {}],
  ])('rejects its request with the loss, noticed by %s', async (_, check) => {
    const request = useManager({ ttl: 2 }).request(freshName(), (held) => {
      block(2);
      check(held);
      return 'done';
    });
    expect(await rejection(request)).toBeInstanceOf(EtcdLockLost);
  });

  test('attaches the loss to the error of the callback', async () => {
    const own = new Error('own');
    const request = useManager({ ttl: 2 }).request(freshName(), () => {
      block(2);
      throw own;
    });
    expect(await rejection(request)).toBe(own);
    expect(own).toHaveProperty('lockError', expect.any(EtcdLockLost));
  });

  test('makes release() resolve to false', async () => {
    const held = await useManager({ ttl: 2 }).acquire(freshName());
    block(2);
    expect(await held.release()).toBe(false);
  });
});
