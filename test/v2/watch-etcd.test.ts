import { randomUUID } from 'node:crypto';
import { beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import { EtcdEventIndexCleared, EtcdKeyNotFound } from '../../src/errors.ts';
import { connect, rejection } from '../support/clients.ts';
import { startEtcd } from '../support/etcd.ts';
import { type EtcdProxy, type ProxiedRequest, startProxy } from '../support/proxy.ts';
import { until } from '../support/until.ts';

const endpoints = inject('etcd');
const isPoll = ({ query }: ProxiedRequest) => query.has('wait');
let dir: string;

beforeEach(() => {
  dir = `/watch-test/${randomUUID()}`;
});

async function proxied(): Promise<EtcdProxy> {
  const proxy = await startProxy(endpoints);
  onTestFinished(() => proxy.stop());
  return proxy;
}

test('past events after the index arrive at once, and no earlier ones', async () => {
  const client = connect({ endpoints });
  const first = await client.set(`${dir}/a`, '1');
  const second = await client.set(`${dir}/a`, '2');
  await client.set(`${dir}/b`, 'of another key');
  const third = await client.delete(`${dir}/a`);
  const indices: (number | undefined)[] = [];
  let after = first.node.modifiedIndex;
  for (let i = 0; i < 2; i += 1) {
    const event = await client.watch(`${dir}/a`, { after });
    indices.push(event?.index);
    after = event?.index ?? after;
  }
  expect(indices).toEqual([second.node.modifiedIndex, third.node.modifiedIndex]);
});

test('the removal of a directory whose name is a prefix of the watched key is an event', async () => {
  const client = connect({ endpoints });
  await client.set(`${dir}/a/f`, '1');
  const { node } = await client.set(`${dir}/ab/f`, '1');
  const removed = await client.delete(`${dir}/a`, { recursive: true });
  const event = await client.watch(`${dir}/ab/f`, { after: node.modifiedIndex });
  expect(event).toMatchObject({ index: removed.node.modifiedIndex, node: { key: `${dir}/a` } });
});

test('no event is missed between a listing and the wait after it', async () => {
  const client = connect({ endpoints });
  const entry = await client.createInOrder(dir, 'u1');
  const { index } = await client.get(dir, { recursive: true });
  await client.delete(entry.node.key, { prevValue: 'u1' });
  const event = await client.watch(entry.node.key, { after: index });
  expect(event).toMatchObject({ action: 'compareAndDelete', prevNode: { value: 'u1' } });
});

test('the expiry of a key is an event', async () => {
  const client = connect({ endpoints });
  const { node } = await client.createInOrder(dir, 'u1', { ttl: 1 });
  const event = await client.watch(node.key, { after: node.modifiedIndex });
  expect(event).toMatchObject({ action: 'expire', node: { key: node.key }, prevNode: { value: 'u1' } });
  await rejection(client.get(node.key), EtcdKeyNotFound);
});

test('a directory can be watched recursively', async () => {
  const proxy = await proxied();
  const client = connect({ endpoints: proxy.url });
  const { node } = await client.createInOrder(dir, 'u1');
  const accepted = proxy.next(isPoll, 'headers');
  const watched = client.watch(dir, { after: node.modifiedIndex, recursive: true });
  await accepted;
  const second = await client.createInOrder(dir, 'u2');
  expect(await watched).toMatchObject({ action: 'create', node: { key: second.node.key, value: 'u2' } });
});

test('a renewal by refresh wakes no watcher', async () => {
  const client = connect({ endpoints });
  const { node } = await client.createInOrder(dir, 'u1', { ttl: 60 });
  await client.renew(node.key, { prevValue: 'u1', prevIndex: node.modifiedIndex, ttl: 60 });
  const { node: gone } = await client.delete(node.key);
  const event = await client.watch(node.key, { after: node.modifiedIndex });
  expect(event).toMatchObject({ action: 'delete', index: gone.modifiedIndex });
});

test('an abort in the middle of a poll closes the connection to etcd', async () => {
  const proxy = await proxied();
  const client = connect({ endpoints: proxy.url });
  const { node } = await client.set(dir, '1');
  const accepted = proxy.next(isPoll, 'headers');
  const caller = new AbortController();
  const watched = client.watch(dir, { after: node.modifiedIndex, signal: caller.signal });
  const rejected = expect(watched).rejects.toBe('enough');
  await accepted;
  caller.abort('enough');
  await rejected;
  await client.close();
  await until(
    () => proxy.openSockets,
    (open) => open === 0,
  );
});

test('100 long polls do not delay a write of the same client', async () => {
  const proxy = await proxied();
  const client = connect({ endpoints: proxy.url });
  const { node } = await client.set(`${dir}/watched`, '1');
  await client.set(`${dir}/other`, '1');
  let answered = 0;
  const watched = Array.from({ length: 100 }, async () => {
    const event = await client.watch(`${dir}/watched`, { after: node.modifiedIndex });
    answered += 1;
    return event?.action;
  });
  await until(
    () => proxy.requests.filter((request) => isPoll(request) && request.status === 200).length,
    (accepted) => accepted === 100,
  );
  await client.delete(`${dir}/other`);
  expect(answered).toBe(0);
  await client.delete(`${dir}/watched`);
  expect(new Set(await Promise.all(watched))).toEqual(new Set(['delete']));
});

test('an index before etcd’s history is an error', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const client = connect({ endpoints: etcd.url });
  const { node } = await client.set('/x', '0');
  for (let i = 0; i < 22; i += 1)
    await Promise.all(Array.from({ length: 50 }, () => client.set('/y', 'more than 1000 events')));
  const error = await rejection(client.watch('/x', { after: node.modifiedIndex }), EtcdEventIndexCleared);
  expect(error.index).toBeGreaterThan(1000);
  const { index } = await client.get('/x');
  const change = await client.delete('/x');
  expect(await client.watch('/x', { after: index })).toMatchObject({ index: change.node.modifiedIndex });
});
