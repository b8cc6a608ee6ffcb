// Checks the names and tables in docs/metrics.md.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import { EtcdLockLost, LockManager, type RequestTrace } from '../src/index.ts';
import { freshName, raw, rejection, untilQueued, useClient } from './support/locks.ts';
import { between, quotedIn, rowsOf } from './support/readme.ts';

const tableOf = (head: string): string[] =>
  rowsOf(`${between('docs/metrics.md', `| ${head} |`, '\n\n')}\n`).flatMap(([cell]) => quotedIn(cell));

const OUTCOMES = ['held', 'joined', 'unavailable', 'timeout', 'aborted', 'lost', 'error'] as const;

test('docs/metrics.md lists all outcomes', () => {
  expect(tableOf('outcome')).toEqual(OUTCOMES);
});

test('holds, a loss and a lost entry publish messages on the listed channels, with exactly the listed fields', async () => {
  const [channels, fields] = [tableOf('channel'), tableOf('field')];
  const name = freshName();
  const heard = new Set<string>();
  const seen = new Set<string>();
  for (const channel of channels) {
    const listen = (message: unknown) => {
      if ((message as RequestTrace).name !== name) return;
      heard.add(channel);
      for (const field of Object.keys(message as object)) seen.add(field);
    };
    subscribe(`tracing:etcd-v2-lock:request:${channel}`, listen);
    onTestFinished(() => void unsubscribe(`tracing:etcd-v2-lock:request:${channel}`, listen));
  }
  const client = useClient();
  const locks = new LockManager(client);
  await locks.request(name, () => 'a result');
  const other = await new LockManager(useClient()).acquire(name);
  const waiting = locks.request(name, () => 'a result');
  const [, own] = await untilQueued(name, 2);
  await raw('DELETE', own?.key ?? '');
  await other.release();
  await waiting;
  const lost = locks.request(name, { ttl: 3 }, async ({ key, signal }) => {
    await new Promise((resolve) => subscribe('tracing:etcd-v2-lock:request:renewed', resolve));
    await raw('DELETE', key);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  });
  expect(await rejection(lost)).toBeInstanceOf(EtcdLockLost);
  expect([...heard].sort()).toEqual([...channels].sort());
  expect([...seen].sort()).toEqual([...fields].sort());
});
