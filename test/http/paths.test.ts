// A reverse proxy that serves etcd below a path, and something else at all others.
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { ignore } from '../../src/base/cancellation.ts';
import { EtcdClient, type EtcdClientOptions, EtcdUnusableAnswer, LockManager } from '../../src/index.ts';
import { Bridge } from '../../src/server/bridge/bridge.ts';
import { APIS } from '../support/apis.ts';
import { runCli } from '../support/cli.ts';
import { freshName, rejection } from '../support/locks.ts';

/** Passes requests below `/team/etcd` on to the shared etcd. Returns the URL there, and the paths that it was asked for. */
async function useReverseProxy() {
  const paths: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const { method, headers, url = '' } = incoming;
    paths.push(url);
    const [, path] = /^\/team\/etcd(\/.*)$/.exec(url) ?? [];
    if (path === undefined) return void outgoing.writeHead(404).end('no such site');
    const onward = request(new URL(path, inject('etcd')), { method: method ?? 'GET', headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      pipeline(answer, outgoing, ignore);
    });
    outgoing.on('close', () => onward.destroy());
    pipeline(incoming, onward, ignore);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin, url: `${origin}/team/etcd/`, paths };
}

function useLocks(options: EtcdClientOptions): LockManager {
  const client = new EtcdClient(options);
  onTestFinished(() => client.close({ timeout: 0 }).catch(ignore));
  return new LockManager(client, { ttl: 9 });
}

describe.each(APIS)('with api %s, through a reverse proxy', (api) => {
  test('a lock is acquired, waited for and taken over, and no request leaves the path', async () => {
    const { url, paths } = await useReverseProxy();
    const name = freshName();
    const held = await useLocks({ api, endpoints: url }).acquire(name);
    const waiting = useLocks({ api, endpoints: url }).acquire(name);
    expect(await held.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
    expect(paths.length).toBeGreaterThan(4);
    expect(paths.filter((path) => !path.startsWith('/team/etcd/v'))).toEqual([]);
  });

  test('another path than that of etcd is reported as no etcd', async () => {
    const { origin } = await useReverseProxy();
    for (const wrong of [origin, `${origin}/team`]) {
      const error = await rejection(useLocks({ api, endpoints: wrong }).acquire(freshName()));
      expect(error).toBeInstanceOf(EtcdUnusableAnswer);
      expect(error).toHaveProperty('message', expect.stringContaining(`${wrong}: `));
    }
  });
});

test('a bridge and the commands reach etcd by the path, and doctor finds nothing wrong with it', async () => {
  const { url, paths } = await useReverseProxy();
  const bridge = await Bridge.start({ endpoints: url });
  onTestFinished(() => bridge.stop());
  const name = freshName();
  const held = await useLocks({ endpoints: bridge.url }).acquire(name);
  const listed = await runCli(['ls', '--api', 'v3', '--endpoints', url, name.slice(0, 12)]);
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringContaining(name) });
  for (const api of APIS.filter((one) => one !== 'both')) {
    const { code, stdout } = await runCli(['doctor', '--api', api, '--endpoints', url]);
    expect(stdout).toContain(url.replace(/\/$/, ''));
    expect(code).toBe(0);
  }
  expect(await held.release()).toBe(true);
  expect(paths.filter((path) => !path.startsWith('/team/etcd/'))).toEqual([]);
});
