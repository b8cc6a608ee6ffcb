import { describe, expect, onTestFinished, test } from 'vitest';
import { EtcdClusterIdChanged, EtcdException, EtcdUnusableAnswer, Lock } from '../../src/index.ts';
import { startEtcd } from '../support/etcd.ts';
import { freshName, queueOn, raw, rejection, useClient } from '../support/locks.ts';
import { httpAnswer, startTcpServer, type TcpHandler } from '../support/tcp-server.ts';
import { until } from '../support/until.ts';

async function useServer(handler: TcpHandler) {
  const server = await startTcpServer(handler);
  onTestFinished(() => server.stop());
  return server;
}

const answerJson = (status: number, body: unknown, index = 7): string =>
  httpAnswer(
    status,
    { 'content-type': 'application/json', 'x-etcd-index': String(index), 'x-etcd-cluster-id': 'abc' },
    JSON.stringify(body),
  );

describe('etcd before 2.2, which does not pad the numbers in the names of in-order keys', () => {
  test('is refused with an error that names the version and the key, and the key is removed', async () => {
    const server = await useServer((socket, request) => {
      const value = /\bvalue=(\w+)/.exec(request)?.[1];
      const node = { key: '/_locks/x/7', value, ttl: 60, modifiedIndex: 7, createdIndex: 7 };
      socket.write(
        request.startsWith('POST')
          ? answerJson(201, { action: 'create', node })
          : answerJson(200, { action: 'delete', node }),
      );
    });
    const lock = new Lock(useClient({ endpoints: server.url }), 'x');
    const error = await rejection(lock.acquire());
    expect(error).toBeInstanceOf(EtcdException);
    expect(error).toHaveProperty('message', expect.stringMatching(/before 2\.2.*\/_locks\/x\/7/));
    expect(server.requests.map((request) => request.split(' ', 2).join(' ').split('?')[0])).toEqual([
      'POST /v2/keys/_locks/x',
      'DELETE /v2/keys/_locks/x/7',
    ]);
  });
});

describe('etcd started without --enable-v2', () => {
  test('is refused with a hint to the flag, and skipped if another member supports v2', async () => {
    const etcd = await startEtcd();
    onTestFinished(() => etcd.stop());
    const server = await useServer((socket) => {
      socket.write(httpAnswer(404, { 'content-type': 'text/plain; charset=utf-8' }, '404 page not found\n'));
    });
    const error = await rejection(new Lock(useClient({ endpoints: server.url }), 'x').acquire({ timeout: 5 }));
    expect(error).toBeInstanceOf(EtcdUnusableAnswer);
    expect(error).toHaveProperty('message', expect.stringContaining('--enable-v2'));
    const both = new Lock(useClient({ endpoints: [server.url, etcd.url] }), freshName());
    expect(await both.acquire({ timeout: 20 })).toBe(true);
  });
});

describe('the replacement of a cluster by another one', () => {
  test('ends a hold with EtcdClusterIdChanged, even if the new cluster has the same key with the same value', async () => {
    const first = await startEtcd();
    const second = await startEtcd({ args: ['--initial-cluster-token', 'another'] });
    onTestFinished(() => Promise.all([first.stop(), second.stop()]).then(() => {}));
    const lock = new Lock(useClient({ endpoints: [first.url, second.url] }), 'x', { uuid: 'same' });
    await lock.acquire({ lockTtl: 9, keepAlive: true });
    // As if a backup had been restored: the same entry in a cluster with another id.
    await raw('PUT', lock.lockKey, { value: 'same', ttl: '600' }, second.url);
    await first.kill();
    await until(
      () => lock.signal.aborted,
      (aborted) => aborted,
    );
    expect(lock.signal.reason).toBeInstanceOf(EtcdClusterIdChanged);
    expect(lock.isTaken).toBe(false);
  });

  test('ends a wait with EtcdClusterIdChanged and leaves no key', async () => {
    const first = await startEtcd();
    const second = await startEtcd({ args: ['--initial-cluster-token', 'another'] });
    onTestFinished(() => Promise.all([first.stop(), second.stop()]).then(() => {}));
    const name = freshName();
    await new Lock(useClient({ endpoints: first.url }), name).acquire();
    const waiting = rejection(new Lock(useClient({ endpoints: [first.url, second.url] }), name).acquire());
    await until(
      () => queueOn(name, first.url),
      (queue) => queue.length === 2,
    );
    await first.kill();
    expect(await waiting).toBeInstanceOf(EtcdClusterIdChanged);
    expect(await queueOn(name, second.url)).toEqual([]);
  });
});
