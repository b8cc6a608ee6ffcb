// Unchanged python-etcd through a bridge, on servers that have no v2 API.
import { describe, expect, inject, test } from 'vitest';
import { byEtcdctl, expectOneCounter, FOREIGN_CYCLES, type Foreign } from '../../test/server/bridge/one-counter.ts';
import { useBridge, usePython } from '../../test/server/bridge/use-bridge.ts';
import { entriesBelow } from '../../test/support/gateway.ts';
import { freshName } from '../../test/support/locks.ts';
import { Contender, type Kind } from './contenders.ts';
import { untilQueued } from './queue.ts';

/** A process of a client that is no part of this package, as a client of the counter. */
function foreign(kind: Kind, etcd: string, times: number): Foreign {
  const started = new Map<string, Contender>();
  return {
    times,
    async hold(lock) {
      const client = started.get(lock) ?? new Contender(kind, { etcd, lock, ttl: 60 });
      started.set(lock, client);
      return { token: await client.hold(), release: () => client.release() };
    },
  };
}

describe.each([
  ['3.5', 'Go 3.5'],
  ['3.6', 'Go 3.6'],
] as const)('on etcd %s', (version, kind) => {
  test(`python-etcd waits for a Mutex of ${kind}, and it for python-etcd`, async () => {
    const etcd = inject('servers')[version];
    const python = await usePython((await useBridge({ endpoints: etcd })).url);
    const name = freshName();
    const lock = `/_locks/${name}`;
    const [first, last] = [await python.lock(name), await python.lock(name)];
    const go = new Contender(kind, { etcd, lock, ttl: 60 });
    const order: string[] = [];
    await first.acquire({ lockTtl: 60 });
    const second = go.hold().then(() => order.push(kind));
    await untilQueued(lock, 2, etcd);
    const third = last.acquire({ lockTtl: 60 }).then(() => order.push('python-etcd'));
    await untilQueued(lock, 3, etcd);
    expect(order).toEqual([]);
    await first.release();
    await second;
    expect(await last.state()).toMatchObject({ isTaken: false });
    await go.release();
    await third;
    expect(order).toEqual([kind, 'python-etcd']);
    await last.release();
    expect(await entriesBelow(`${lock}/`, etcd)).toEqual([]);
  });

  test(`400 cycles of python-etcd and Node through two bridges, and of Node, etcdctl and ${kind} on etcd v3, lose no update`, async () => {
    const etcd = inject('servers')[version];
    const times = FOREIGN_CYCLES / 2;
    await expectOneCounter(etcd, [byEtcdctl(etcd, times), foreign(kind, etcd, times)]);
  }, 240_000);
});
