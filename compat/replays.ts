import { expect } from 'vitest';
import { EtcdLockExpired, EtcdValueError } from '../src/index.ts';
import { rejection } from '../test/support/locks.ts';
import type { Stage } from './stage.ts';
import { SHORT_TTL } from './transcript.ts';

const TTL = { lockTtl: 60 };

/** By the title of the scenario: the calls on `Lock` that correspond to python's, with `see` after each. */
export const replays: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  async 'uncontended: acquire(lock_ttl=60) then release()'(stage) {
    const lock = stage.lock('s1');
    expect(await lock.acquire(TTL)).toBe(true);
    await stage.see(lock, 1);
    expect(await lock.isAcquired()).toBe(true);
    await lock.release();
    await stage.see(lock, 0);
  },
  async 'acquire twice on one Lock renews the TTL'(stage) {
    const lock = stage.lock('s2');
    expect(await lock.acquire(TTL)).toBe(true);
    await stage.see(lock, 1);
    expect(await lock.acquire({ lockTtl: 90 })).toBe(true);
    await stage.see(lock, 1);
    await lock.release();
    await stage.see(lock, 0);
  },
  // The recording begins at the second release.
  async 'release twice'(stage) {
    const lock = stage.lock('s2');
    await lock.acquire(TTL);
    await lock.release();
    stage.forget();
    await lock.release();
    await stage.see(lock, 0);
  },
  async 'release without ever acquiring'(stage) {
    const lock = stage.lock('s3');
    const error = await rejection(lock.release());
    expect(error).toBeInstanceOf(EtcdValueError);
    expect(error).toMatchObject({ message: 'No sequence present.' });
    await stage.see(lock, 0);
  },
  async 'contended: acquire(blocking=False) keeps its place, polled until the owner releases'(stage) {
    const [a, b] = [stage.lock('s4'), stage.lock('s4')];
    expect(await a.acquire(TTL)).toBe(true);
    await stage.see(a, 1);
    for (const _ of ['first', 'again']) {
      expect(await b.acquire({ blocking: false, ...TTL })).toBe(false);
      await stage.see(a, 2);
    }
    await a.release();
    await stage.see(a, 1);
    expect(await b.acquire({ blocking: false, ...TTL })).toBe(true);
    await stage.see(a, 1);
    await b.release();
    await stage.see(a, 0);
  },
  async 'contended: blocking acquire, handed over by release'(stage) {
    const [a, b] = [stage.lock('s5'), stage.lock('s5')];
    await a.acquire(TTL);
    await stage.see(a, 1);
    const waiting = b.acquire(TTL);
    await stage.see(a, 2);
    await a.release();
    expect(await waiting).toBe(true);
    await stage.see(a, 1);
    await b.release();
    await stage.see(a, 0);
  },
  async 'three contenders, the middle one gives up by release'(stage) {
    const [a, b, c] = [stage.lock('s6'), stage.lock('s6'), stage.lock('s6')];
    await a.acquire(TTL);
    await stage.see(a, 1);
    await b.acquire({ blocking: false, ...TTL });
    await stage.see(a, 2);
    const waiting = c.acquire(TTL);
    await stage.see(a, 3);
    await b.release();
    await stage.see(a, 2);
    expect(c.isTaken).toBe(false);
    await a.release();
    expect(await waiting).toBe(true);
    await stage.see(a, 1);
    await c.release();
    await stage.see(a, 0);
  },
  async 'set uuid recovery from a second Lock object'(stage) {
    const [a, b] = [stage.lock('s7'), stage.lock('s7')];
    await a.acquire(TTL);
    await stage.see(a, 1);
    await b.setUuid(a.uuid);
    expect(await b.isAcquired()).toBe(false);
    expect(await b.acquire(TTL)).toBe(true);
    expect(await b.isAcquired()).toBe(true);
    await stage.see(a, 1);
    await b.release();
    await stage.see(a, 0);
    expect(await a.isAcquired()).toBe(false);
  },
  async 'set uuid that does not exist'(stage) {
    const lock = stage.lock('s8');
    const { uuid } = lock;
    expect(await rejection(lock.setUuid('0'.repeat(32)))).toMatchObject({ message: 'Inexistent UUID' });
    expect(lock.uuid).toBe(uuid);
    await stage.see(lock, 0);
  },
  async 'a waiter whose own key expires while it waits'(stage) {
    const [a, b] = [stage.lock('s9'), stage.lock('s9')];
    await a.acquire(TTL);
    await stage.see(a, 1);
    const expired = rejection(b.acquire({ lockTtl: SHORT_TTL }));
    await stage.see(a, 2);
    expect(await expired).toBeInstanceOf(EtcdLockExpired);
    await stage.see(a, 1);
    await a.release();
    await stage.see(a, 0);
  },
  async 'owner whose key expires: waiter takes over on the expire event'(stage) {
    const [a, b] = [stage.lock('s10'), stage.lock('s10')];
    await a.acquire({ lockTtl: SHORT_TTL });
    await stage.see(a, 1);
    const waiting = b.acquire(TTL);
    await stage.see(a, 2);
    expect(await waiting).toBe(true);
    await stage.see(a, 1);
    expect(await a.isAcquired()).toBe(false);
    await a.release();
    await b.release();
    await stage.see(a, 0);
  },
  async 'context manager: no TTL'(stage) {
    const lock = stage.lock('s11');
    await lock.acquire({ lockTtl: null });
    await stage.see(lock, 1);
    expect(await lock.isAcquired()).toBe(true);
    await lock[Symbol.asyncDispose]();
    await stage.see(lock, 0);
  },
  async 'lock_ttl=None'(stage) {
    const lock = stage.lock('s13');
    expect(await lock.acquire({ lockTtl: null })).toBe(true);
    await stage.see(lock, 1);
    expect(await lock.acquire({ lockTtl: null })).toBe(true);
    await stage.see(lock, 1);
    await lock.release();
    await stage.see(lock, 0);
  },
  async 'custom lock_prefix'(stage) {
    const lock = stage.lock('s14', '/apps/locks');
    expect(await lock.acquire(TTL)).toBe(true);
    await stage.see(lock, 1);
    await lock.release();
    await stage.see(lock, 0);
  },
};
