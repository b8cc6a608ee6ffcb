// Unchanged python-etcd through a bridge, on servers that have no v2 API.
import { expect, inject, onTestFinished, test } from 'vitest';
import { Bridge } from '../../src/server/index.ts';
import { entriesBelow } from '../../test/support/gateway.ts';
import { freshName } from '../../test/support/locks.ts';
import { startPython } from '../python.ts';
import { Contender } from './contenders.ts';
import { untilQueued } from './queue.ts';

test.each([
  ['3.5', 'Go 3.5'],
  ['3.6', 'Go 3.6'],
] as const)('on etcd %s, python-etcd waits for a Mutex of %s, and it for python-etcd', async (version, kind) => {
  const etcd = inject('servers')[version];
  const bridge = await Bridge.start({ endpoints: etcd });
  onTestFinished(() => bridge.stop());
  const python = await startPython(bridge.url);
  onTestFinished(() => python.stop());
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
