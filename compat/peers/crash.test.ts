import { expect, inject, test } from 'vitest';
import { freshName } from '../../test/support/locks.ts';
import { Contender, IN_THE_QUEUE, type Kind } from './contenders.ts';
import { untilQueued } from './queue.ts';

const TTL = 10;

test.each(['3.4', '3.5', '3.6'] as const)(
  'on etcd %s, kill -9 of LockManager or of any other client frees the lock after its lease, with a greater token',
  async (version) => {
    const etcd = inject('servers')[version];
    const kinds: readonly Kind[] = ['Node', ...IN_THE_QUEUE];
    const outcomes = await Promise.all(
      kinds.map(async (kind) => {
        const lock = `/_locks/${freshName()}`;
        const holder = new Contender(kind, { etcd, lock, ttl: TTL });
        const token = await holder.hold();
        const waiter = new Contender(kind === 'Node' ? 'Go 3.6' : 'Node', { etcd, lock, ttl: 60 });
        const next = waiter.hold();
        await untilQueued(lock, 2, etcd);
        await holder.kill();
        const killed = performance.now();
        const later = await next;
        const seconds = (performance.now() - killed) / 1000;
        await waiter.release();
        await untilQueued(lock, 0, etcd);
        return { kind, isGreater: later > token, seconds };
      }),
    );
    for (const { kind, isGreater, seconds } of outcomes) {
      expect(isGreater, kind).toBe(true);
      // Every client renews its lease before half of it has passed.
      expect(seconds, kind).toBeGreaterThan(TTL / 2 - 1);
    }
  },
);
