import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/base/time.ts';
import type { Budget } from '../../src/server/budget.ts';
import { Front, type FrontOptions } from '../../src/server/front/front.ts';
import {
  createHttpServer,
  type HttpServerOptions,
  listen,
  type WebServer,
} from '../../src/server/front/http-server.ts';
import { forEveryone } from '../../src/server/served-keys.ts';
import { MemoryStore } from '../../src/server/store/memory.ts';
import { Store } from '../../src/server/store/store.ts';
import { RawConnection, request } from './raw-connection.ts';
import { until } from './until.ts';

/** An embedded server whose parts a test can inspect. */
export interface OpenServer {
  readonly url: string;
  readonly store: Store;
  readonly server: WebServer;
  connections(): Promise<number>;
}

/** Limits for the clients. Default: those of `EmbeddedEtcd`. */
export interface OpenLimits extends Partial<Pick<FrontOptions, 'keys' | 'patience'>>, HttpServerOptions {
  readonly budget?: Budget;
}

/** Starts a server from the parts of `EmbeddedEtcd`. The end of the test stops it and fails on uncaught errors and warnings. */
export async function serveOpenly(clock: Clock = systemClock, limits: OpenLimits = {}): Promise<OpenServer> {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  process.on('uncaughtException', note).on('unhandledRejection', note).on('warning', note);
  const store = new Store(clock);
  const server = createHttpServer(limits);
  const member = { id: '1', name: 'open', peerURLs: [], clientURLs: [] };
  const keys = forEveryone(new MemoryStore(store, limits.budget));
  new Front({ keys, member, hosts: ['127.0.0.1'], ...limits }).serve(server);
  await listen(server, 0, '127.0.0.1');
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
    store.stop();
    process.off('uncaughtException', note).off('unhandledRejection', note).off('warning', note);
    expect(uncaught).toEqual([]);
  });
  const { port } = server.address() as AddressInfo;
  const connections = promisify(server.getConnections.bind(server));
  return { url: `${limits.tls ? 'https' : 'http'}://127.0.0.1:${port}`, store, server, connections };
}

/** Waits until there is no watcher and no open connection. */
export const nothingLeft = ({ store, connections }: OpenServer): Promise<unknown> =>
  until(
    async () => ({ watchers: store.watchers, connections: await connections() }),
    ({ watchers, connections }) => watchers === 0 && connections === 0,
  );

/** Waits until there are `count` watchers. */
export const waiting = ({ store }: OpenServer, count: number): Promise<number> =>
  until(
    () => store.watchers,
    (watchers) => watchers === count,
  );

/** Waits for `count` more requests. */
export function requests({ server }: OpenServer, count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    server.on('request', () => {
      left -= 1;
      if (left === 0) resolve();
    });
  });
}

/** Expects that the server keeps nothing of earlier clients and answers the next one. */
export async function expectUnharmed(etcd: OpenServer): Promise<void> {
  await nothingLeft(etcd);
  const next = await RawConnection.open(etcd.url);
  next.send(request('GET', '/version', { headers: 'Connection: close\r\n' }));
  await next.closed();
  expect(next.answers).toMatchObject([{ status: 200, whole: true }]);
  await nothingLeft(etcd);
}
