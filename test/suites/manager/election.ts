import { describe, expect } from 'vitest';
import {
  EtcdClientClosed,
  EtcdClusterIdChanged,
  EtcdConnectionFailed,
  EtcdLockLost,
  EtcdLockReleased,
} from '../../../src/errors.ts';
import type { Leader } from '../../../src/manager/election/leader.ts';
import type { Term } from '../../../src/manager/election/term.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { Lock } from '../../../src/python/lock.ts';
import { rejection } from '../../support/clients.ts';
import { gate } from '../../support/gate.ts';
import { next, untilFinished } from '../../support/iterators.ts';
import { listenersOf } from '../../support/leaks.ts';
import { aborted } from '../lock/locks.ts';
import { failNextRemoval, failRenewals, hangRenewals, requestsOf } from '../stores/interventions.ts';
import { DEFAULT_LABEL, labelled, type ManagerTest } from './managers.ts';

const UUID = '0123456789abcdef0123456789abcdef';

/** Values that could be taken for other parts of an entry's value, by what each is. */
const ODD: readonly (readonly [what: string, value: string])[] = [
  ['a URL', 'https://10.0.0.7:8080/jobs?a=b&c=d#e'],
  ['JSON', '{"url":"http://[::1]:80","zone":"a"}'],
  ['non-ASCII text', 'Grüße, 世界 🔒'],
  ['text with "@" and "%"', '@a@%40%zz%'],
  ['text like the mark of a bridge', '@via bridge'],
  ['text like a whole value', `shared:id:pod-1:${UUID}@label@value`],
  ['a space', ' '],
  ['an id of 32 hexadecimal digits', UUID],
  ['a digest', `sha256:${UUID}${UUID}`],
  ['text of the maximum length', `${'%'.repeat(333)}x`],
];

export function election(test: ManagerTest): void {
  describe('a campaign', () => {
    test('leads at once if nobody else does, and publishes its value behind the label', async ({
      lockName,
      queue,
      a,
    }) => {
      const mine = a.locks.elect(lockName, { value: 'http://a:80' });
      for await (const term of mine.campaign()) {
        const [entry] = await queue.entries();
        expect(entry).toMatchObject({ key: term.key, value: `${labelled(term.uuid)}@http%3A%2F%2Fa%3A80` });
        expect(term).toMatchObject({ name: lockName, mode: 'exclusive', value: 'http://a:80' });
        expect(term.fencingToken).toBeGreaterThan(0n);
        expect(term.expiresIn()).toBeGreaterThan(0);
        term.assertHeld();
        break;
      }
      expect(await queue.entries()).toEqual([]);
    });

    test('without a value or with an empty one writes the same entry as a request', async ({ lockName, queue, a }) => {
      for (const options of [{}, { value: '' }, { value: undefined }])
        for await (const term of a.locks.elect(lockName, options).campaign()) {
          expect(term.value).toBeUndefined();
          expect(await queue.values()).toEqual([labelled(term.uuid)]);
          break;
        }
      for await (const term of a.locks.elect(lockName, { value: 'x', label: '' }).campaign()) {
        expect(await queue.values()).toEqual([`${term.uuid}@@x`]);
        break;
      }
    });

    test('has the options of its manager, but not those that are for requests', async ({
      lockName,
      queue,
      makeProcess,
    }) => {
      const { locks } = await makeProcess({
        ttl: 600,
        label: 'web',
        identity: 'pod-1',
        timeout: 0.001,
        holdAtLeast: 60,
        maxHold: 60,
      });
      const { key } = await queue.put('leader');
      const campaign = locks.elect(lockName).campaign();
      const elected = next(campaign);
      await queue.untilLength(2);
      await queue.remove(key);
      const term = await elected;
      expect(term.expiresIn()).toBeGreaterThan(400);
      expect(await queue.values()).toEqual([`id:pod-1:${term.uuid}@web`]);
      await campaign.return();
      expect(await queue.entries()).toEqual([]);
    });

    test('waits for its turn in the queue: each candidate leads after the one before it has resigned', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const [first, second] = [a, b].map(({ locks }) => locks.elect(lockName).campaign());
      const one = await next(first as AsyncGenerator<Term>);
      const elected = next(second as AsyncGenerator<Term>);
      await queue.untilLength(2);
      expect(await one.resign()).toBe(true);
      const other = await elected;
      expect(other.fencingToken).toBeGreaterThan(one.fencingToken);
      expect(one.signal.aborted).toBe(false);
      expect(() => one.assertHeld()).toThrow(EtcdLockReleased);
      expect(one.expiresIn()).toBe(0);
      for (const campaign of [first, second]) await campaign?.return();
      expect(await queue.entries()).toEqual([]);
    });

    test('resigns at the end of the loop’s body, and campaigns again behind those who wait', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const order: string[] = [];
      const lead = async (who: string, { locks }: typeof a) => {
        for await (const term of locks.elect(lockName).campaign()) {
          // The other one must wait before this term ends.
          if (order.length < 3) await queue.untilLength(2);
          order.push(who);
          term.assertHeld();
          if (order.filter((name) => name === who).length === 2) break;
        }
      };
      await Promise.all([lead('a', a), lead('b', b)]);
      expect([
        ['a', 'b', 'a', 'b'],
        ['b', 'a', 'b', 'a'],
      ]).toContainEqual(order);
      expect(await queue.entries()).toEqual([]);
    });

    test('takes turns with another election of the same process', async ({ lockName, queue, a }) => {
      const [first, second] = [1, 2].map(() => a.locks.elect(lockName).campaign());
      const one = await next(first as AsyncGenerator<Term>);
      const elected = next(second as AsyncGenerator<Term>);
      await one.resign();
      (await elected).assertHeld();
      for (const campaign of [first, second]) await campaign?.return();
      expect(await queue.entries()).toEqual([]);
    });

    test('that is left by an error in the body rejects with it and leaves no key', async ({ lockName, queue, a }) => {
      const own = new Error('own');
      const lead = async () => {
        for await (const term of a.locks.elect(lockName).campaign()) {
          expect(await queue.entries()).toMatchObject([{ key: term.key }]);
          throw own;
        }
      };
      await expect(lead()).rejects.toBe(own);
      expect(await queue.entries()).toEqual([]);
    });

    test('removes a key in the background that it could not remove', async ({ lockName, queue, a }) => {
      for await (const _ of a.locks.elect(lockName).campaign()) {
        failNextRemoval(a.client, new EtcdConnectionFailed('no way'));
        break;
      }
      await queue.untilLength(0);
    });

    test('that loses its key is notified, and campaigns again', async ({ lockName, queue, a }) => {
      const uuids: string[] = [];
      for await (const term of a.locks.elect(lockName, { ttl: 10 }).campaign()) {
        uuids.push(term.uuid);
        if (uuids.length === 2) break;
        await queue.remove(term.key);
        const reason = await aborted(term.signal);
        expect(reason).toBeInstanceOf(EtcdLockLost);
        expect(() => term.assertHeld()).toThrow(reason as Error);
        expect(await term.resign()).toBe(false);
      }
      expect(new Set(uuids).size).toBe(2);
      expect(await queue.entries()).toEqual([]);
    });

    test('that cannot renew is notified of the loss before another candidate leads', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      hangRenewals(a.client);
      const [first, second] = [a, b].map(({ locks }) => locks.elect(lockName, { ttl: 5 }).campaign());
      const one = await next(first as AsyncGenerator<Term>);
      const elected = next(second as AsyncGenerator<Term>);
      await queue.untilLength(2);
      const other = await elected;
      expect(one.signal.reason).toBeInstanceOf(EtcdLockLost);
      expect(other.fencingToken).toBeGreaterThan(one.fencingToken);
      for (const campaign of [first, second]) await campaign?.return();
      expect(await queue.entries()).toEqual([]);
    });

    test('with an identity ends if its key is removed: another process may have that identity', async ({
      lockName,
      queue,
      a,
    }) => {
      const lead = async () => {
        for await (const term of a.locks.elect(lockName, { ttl: 10, identity: 'pod-1' }).campaign()) {
          await queue.remove(term.key);
          await aborted(term.signal);
        }
      };
      const { cause } = await rejection(lead(), EtcdLockLost);
      expect((cause as Error).message).toContain('does another process have the identity "pod-1"');
      expect(await queue.entries()).toEqual([]);
    });

    test('with an identity campaigns again if its entry could have expired: nobody had to evict it', async ({
      lockName,
      queue,
      a,
    }) => {
      let isDown = true;
      a.client.intercept(({ kind, send }) =>
        isDown && kind === 'renew' ? Promise.reject(new EtcdConnectionFailed('etcd is down')) : send(),
      );
      const uuids: string[] = [];
      for await (const term of a.locks.elect(lockName, { ttl: 2, identity: 'pod-1' }).campaign()) {
        uuids.push(term.uuid);
        if (uuids.length === 2) break;
        await aborted(term.signal);
        isDown = false;
      }
      expect(new Set(uuids).size).toBe(2);
      expect(await queue.entries()).toEqual([]);
    });

    test('ends if another cluster answers: tokens of two clusters cannot be compared', async ({ lockName, a }) => {
      const changed = new EtcdClusterIdChanged('another cluster answered');
      failRenewals(a.client, changed);
      const lead = async () => {
        for await (const term of a.locks.elect(lockName, { ttl: 2 }).campaign()) await aborted(term.signal);
      };
      expect(await rejection(lead(), EtcdLockLost)).toHaveProperty('cause', changed);
    });

    test('with an identity does not wait for the entry of its crashed predecessor', async ({ lockName, queue, a }) => {
      await queue.put(`id:pod-1:${UUID}@web@http%3A%2F%2Fa`);
      for await (const term of a.locks.elect(lockName, { identity: 'pod-1' }).campaign()) {
        expect(await queue.entries()).toMatchObject([{ key: term.key }]);
        break;
      }
    });

    test('rejects with the reason of its signal while it waits, and leaves no key', async ({ lockName, queue, a }) => {
      const { key } = await queue.put('leader');
      const stop = new AbortController();
      const elected = next(a.locks.elect(lockName).campaign({ signal: stop.signal }));
      await queue.untilLength(2);
      const reason = new Error('stopped');
      stop.abort(reason);
      await expect(elected).rejects.toBe(reason);
      expect(await queue.entries()).toMatchObject([{ key }]);
      expect(listenersOf(stop.signal)).toBe(0);
    });

    test('rejects with the reason of its signal at the end of a term, which lasts until then', async ({
      lockName,
      queue,
      a,
    }) => {
      const stop = new AbortController();
      const reason = new Error('stopped');
      const lead = async () => {
        for await (const term of a.locks.elect(lockName).campaign({ signal: stop.signal })) {
          stop.abort(reason);
          term.assertHeld();
        }
      };
      await expect(lead()).rejects.toBe(reason);
      expect(await queue.entries()).toEqual([]);
    });

    test('with a signal that has aborted makes no request', async ({ lockName, a }) => {
      const calls = requestsOf(a.client);
      const reason = new Error('stopped');
      await expect(next(a.locks.elect(lockName).campaign({ signal: AbortSignal.abort(reason) }))).rejects.toBe(reason);
      expect(calls()).toEqual([]);
    });

    test('ends when its client is closed: the signal of the term aborts, and the key is removed', async ({
      lockName,
      queue,
      openUnclosed,
    }) => {
      const client = await openUnclosed();
      const elected = gate();
      const lead = async () => {
        for await (const term of new LockManager(client).elect(lockName).campaign()) {
          elected.open();
          expect(await aborted(term.signal)).toHaveProperty('cause', expect.any(EtcdClientClosed));
        }
      };
      const ended = rejection(lead(), EtcdClientClosed);
      await elected.opened;
      await client.close();
      await ended;
      expect(await queue.entries()).toEqual([]);
    });

    test('ends when its client is closed while it waits', async ({ lockName, queue, openUnclosed }) => {
      const client = await openUnclosed();
      const { key } = await queue.put('leader');
      const ended = rejection(next(new LockManager(client).elect(lockName).campaign()), EtcdClientClosed);
      await queue.untilLength(2);
      await client.close();
      await ended;
      expect(await queue.entries()).toMatchObject([{ key }]);
    });
  });

  describe('the value of a leader', () => {
    test.for(ODD)(
      'is read back if it is %s, and does not change the other parts',
      async ([, value], { lockName, queue, a, b }) => {
        for await (const term of a.locks.elect(lockName, { value, label: 'web@1' }).campaign()) {
          expect((await queue.values())[0]).toMatch(/^[!-~]+$/);
          const { key, uuid } = term;
          expect(await b.locks.elect(lockName).leader()).toMatchObject({ key, uuid, value, label: 'web@1' });
          expect((await b.locks.query(lockName)).held).toMatchObject([{ key, uuid, label: 'web@1' }]);
          break;
        }
        expect(await queue.entries()).toEqual([]);
      },
    );

    test.for(ODD)('may be that of another candidate, if it is %s', async ([, value], { lockName, queue, a, b }) => {
      const campaigns = [a, b].map(({ locks }) => locks.elect(lockName, { value, label: UUID }).campaign());
      const [first, second] = campaigns as [(typeof campaigns)[0], (typeof campaigns)[0]];
      const { uuid } = await next(first);
      const waiting = next(second);
      await queue.untilLength(2);
      await first.return();
      const term = await waiting;
      expect(term.value).toBe(value);
      expect(term.uuid).not.toBe(uuid);
      await second.return();
    });

    test('of the maximum length fits beside the longest name, identity and label', async ({ lockName, a, b }) => {
      const longest = lockName + 'ü'.repeat((300 - lockName.length) / 2);
      const value = '%'.repeat(333);
      const mine = a.locks.elect(longest, { value, label: 'ü'.repeat(50), identity: 'ü'.repeat(100) });
      for await (const term of mine.campaign()) {
        const queue = b.client.store.queue(longest);
        const [entry] = (await queue.read()).entries;
        expect(entry?.key).toBe(term.key);
        // The first request of its connection: etcd limits the first request line.
        if (entry) await b.client.store.queue(longest).evict(entry, {});
        expect((await queue.read()).entries).toEqual([]);
        break;
      }
    });
  });

  describe('leader', () => {
    test('resolves to undefined if the queue is empty', async ({ lockName, a }) => {
      expect(await a.locks.elect(lockName).leader()).toBeUndefined();
    });

    test('resolves to the leader, with its label, value and identity, and not to who waits', async ({
      lockName,
      queue,
      a,
    }) => {
      const { key } = await queue.put(`id:pod-1:${UUID}@web-1%3A17@http%3A%2F%2Fa`);
      const campaign = a.locks.elect(lockName, { value: 'b' }).campaign();
      const elected = next(campaign);
      await queue.untilLength(2);
      const first = { key, uuid: UUID, label: 'web-1:17', identity: 'pod-1', value: 'http://a', own: false };
      expect(await a.locks.elect(lockName).leader()).toEqual({ name: lockName, ...first });
      await queue.remove(key);
      const own = { uuid: (await elected).uuid, label: DEFAULT_LABEL, identity: undefined, value: 'b', own: true };
      expect(await a.locks.elect(lockName).leader()).toMatchObject(own);
      await campaign.return();
    });

    test('resolves to a holder that is no candidate: it has no value', async ({ lockName, queue, a, b }) => {
      const lock = new Lock(b.client, lockName);
      await lock.acquire();
      const none = { value: undefined, label: undefined, identity: undefined };
      expect(await a.locks.elect(lockName).leader()).toMatchObject({ key: lock.lockKey, uuid: lock.uuid, ...none });
      await lock.release();
      await b.locks.request(lockName, async ({ key }) => {
        expect(await a.locks.elect(lockName).leader()).toMatchObject({ key, value: undefined, label: DEFAULT_LABEL });
      });
      const python = await queue.put('python');
      expect(await a.locks.elect(lockName).leader()).toMatchObject({ key: python.key, uuid: 'python', own: false });
      await queue.remove(python.key);
    });

    test('resolves to undefined while requests share the lock', async ({ lockName, a, b }) => {
      const held = await a.locks.acquire(lockName, { mode: 'shared' });
      expect(await b.locks.elect(lockName).leader()).toBeUndefined();
      await held.release();
    });
  });

  describe('observe', () => {
    test('yields the leaders in order, and undefined while there is none', async ({ lockName, queue, a }) => {
      const leaders = a.locks.elect(lockName).observe({ signal: untilFinished() });
      expect(await next(leaders)).toBeUndefined();
      const [first, second] = [await queue.put(`${UUID}@web@http%3A%2F%2Fa`), await queue.put('python')];
      const one = { key: first.key, uuid: UUID, label: 'web', value: 'http://a', own: false };
      expect(await next(leaders)).toMatchObject(one);
      const following = next(leaders);
      await queue.remove(first.key);
      expect(await following).toMatchObject({ key: second.key, uuid: 'python', value: undefined, label: undefined });
      await queue.remove(second.key);
      expect(await next(leaders)).toBeUndefined();
    });

    test('begins with the present leader, and yields no waiter that comes or leaves', async ({
      lockName,
      queue,
      a,
    }) => {
      const [first, second] = [await queue.put('first'), await queue.put('second')];
      const leaders = a.locks.elect(lockName).observe({ signal: untilFinished() });
      expect(await next(leaders)).toMatchObject({ key: first.key });
      const following = next(leaders);
      const third = await queue.put('third');
      await queue.remove(second.key);
      await queue.remove(first.key);
      expect(await following).toMatchObject({ key: third.key });
    });

    test('yields the candidates of elections, and which of them is of this process', async ({
      lockName,
      queue,
      a,
      b,
    }) => {
      const leaders = b.locks.elect(lockName).observe({ signal: untilFinished() });
      expect(await next(leaders)).toBeUndefined();
      for await (const { key, uuid } of a.locks.elect(lockName, { value: 'a' }).campaign()) {
        expect(await next(leaders)).toEqual({
          name: lockName,
          key,
          uuid,
          label: DEFAULT_LABEL,
          identity: undefined,
          value: 'a',
          own: true,
        } satisfies Leader);
        break;
      }
      expect(await next(leaders)).toBeUndefined();
      expect(await queue.entries()).toEqual([]);
    });

    test('yields undefined while requests share the lock', async ({ lockName, queue, a, b }) => {
      const { key } = await queue.put('leader');
      const leaders = a.locks.elect(lockName).observe({ signal: untilFinished() });
      expect(await next(leaders)).toMatchObject({ key });
      const reading = b.locks.acquire(lockName, { mode: 'shared' });
      await queue.untilLength(2);
      await queue.remove(key);
      expect(await next(leaders)).toBeUndefined();
      await (await reading).release();
    });

    test('rejects with the reason of its signal while it waits, and at the next step', async ({ lockName, a }) => {
      const [stop, reason] = [new AbortController(), new Error('stopped')];
      const waiting = a.locks.elect(lockName).observe({ signal: stop.signal });
      const later = a.locks.elect(lockName).observe({ signal: stop.signal });
      for (const leaders of [waiting, later]) await next(leaders);
      const waited = next(waiting);
      stop.abort(reason);
      await expect(waited).rejects.toBe(reason);
      await expect(next(later)).rejects.toBe(reason);
      expect(listenersOf(stop.signal)).toBe(0);
    });

    test('ends with `break`, and makes no further request', async ({ lockName, a }) => {
      const calls = requestsOf(a.client);
      for await (const _ of a.locks.elect(lockName).observe()) break;
      const { length } = calls();
      await a.locks.query(lockName);
      expect(calls().slice(length)).not.toContain('wait');
    });

    test('rejects when its client is closed', async ({ lockName, openUnclosed }) => {
      const client = await openUnclosed();
      const leaders = new LockManager(client).elect(lockName).observe();
      await next(leaders);
      const ended = rejection(next(leaders), EtcdClientClosed);
      await client.close();
      await ended;
    });
  });

  describe('elect', () => {
    test.for<
      readonly [what: string, options: unknown, ErrorClass: typeof TypeError | typeof RangeError, message: string]
    >([
      ['a value that is a number', { value: 5 }, TypeError, 'value must be a string, got 5'],
      ['a value that is null', { value: null }, TypeError, 'value must be a string, got null'],
      ['half a character', { value: 'a\ud800' }, RangeError, 'value must be well-formed Unicode, got "a\\ud800"'],
      [
        'a value that is too long',
        { value: 'x'.repeat(1001) },
        RangeError,
        'value must have at most 1000 bytes when percent-encoded, got 1001: "xxx',
      ],
      ['a value that is too long when encoded', { value: '%'.repeat(334) }, RangeError, 'got 1002: "%%%'],
      ['a TTL of 0', { ttl: 0 }, RangeError, 'ttl must be an integer number of seconds from 1 to 2147483648, got 0'],
      ['an empty identity', { identity: '' }, RangeError, 'identity must not be empty, got ""'],
      ['a label that is a number', { label: 5 }, TypeError, 'label must be a string, got 5'],
      ['an option of requests', { timeout: 5 }, TypeError, 'unknown option "timeout"'],
      ['a misspelt option', { val: 'x' }, TypeError, 'unknown option "val": did you mean "value"?'],
      ['a value instead of options', 'http://a', TypeError, 'options must be an object, got "http://a"'],
    ])('refuses %s before any request', ([, options, ErrorClass, message], { lockName, a }) => {
      const calls = requestsOf(a.client);
      const elect = () => a.locks.elect(lockName, options as never);
      expect(elect).toThrow(ErrorClass);
      expect(elect).toThrow(message);
      expect(calls()).toEqual([]);
    });

    test('refuses an invalid name, and one that is too long for a value', ({ a }) => {
      expect(() => a.locks.elect('')).toThrow(RangeError);
      expect(() => a.locks.elect(5 as never)).toThrow('lock name must be a string, got 5');
      const long = 'x'.repeat(301);
      expect(a.locks.elect(long).name).toBe(long);
      expect(() => a.locks.elect(long, { value: 'x' })).toThrow(
        'the name of an election with a value must have at most 300 bytes, got 301',
      );
    });

    test('refuses invalid options of a campaign and of an observation before any request', ({ lockName, a }) => {
      const calls = requestsOf(a.client);
      const mine = a.locks.elect(lockName);
      for (const call of [mine.campaign.bind(mine), mine.observe.bind(mine)]) {
        expect(() => call({ signal: {} } as never)).toThrow('signal must be an AbortSignal, got [object Object]');
        expect(() => call({ timeout: 5 } as never)).toThrow('unknown option "timeout"');
        expect(() => call(null as never)).toThrow('options must be an object, got null');
      }
      expect(calls()).toEqual([]);
    });
  });
}
