import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { expect, onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../src/base/time.ts';
import type { Budget } from '../../src/server/budget.ts';
import { Front, type FrontOptions } from '../../src/server/front/front.ts';
import { createHttpServer, type HttpServerOptions, type WebServer } from '../../src/server/front/http-server.ts';
import { checkListening, listen } from '../../src/server/listening.ts';
import { forEveryone } from '../../src/server/served-keys.ts';
import { MemoryStore } from '../../src/server/store/memory.ts';
import { Store } from '../../src/server/store/store.ts';
import { V3Gateway } from '../../src/server/v3/gateway/gateway.ts';
import { V3Member } from '../../src/server/v3/member.ts';
import type { V3Store } from '../../src/server/v3/store/store.ts';
import { RawConnection, request } from './raw-connection.ts';
import { until } from './until.ts';

/** An embedded server whose parts a test can inspect. */
export interface OpenServer {
  readonly url: string;
  /** The store of v2. */
  readonly store: Store;
  readonly member: V3Member;
  /** The store of v3. */
  readonly v3: V3Store;
  readonly server: WebServer;
  connections(): Promise<number>;
}

/** What to serve, and limits for the clients. Default: those of `EmbeddedEtcd`. */
export interface OpenLimits extends Partial<Pick<FrontOptions, 'keys' | 'gateway' | 'patience'>>, HttpServerOptions {
  readonly budget?: Budget;
}

const MEMBER = { clusterId: 1n, version: '3.4', history: 10_000 } as const;

/** Starts a server from the parts of `EmbeddedEtcd`. The end of the test stops it and fails on uncaught errors and warnings. */
export async function serveOpenly(clock: Clock = systemClock, limits: OpenLimits = {}): Promise<OpenServer> {
  const uncaught: unknown[] = [];
  const note = (error: unknown) => uncaught.push(error);
  process.on('uncaughtException', note).on('unhandledRejection', note).on('warning', note);
  const store = new Store(clock);
  const server = createHttpServer(limits);
  const [id, name, clientURLs] = [1, 'open', []];
  const member = new V3Member({ ...MEMBER, memberId: BigInt(id), name, clientURLs, clock });
  const v3 = member.store;
  const keys = forEveryone(new MemoryStore(store, limits.budget));
  new Front({
    keys,
    gateway: new V3Gateway(member),
    member: { id: `${id}`, name, peerURLs: [], clientURLs },
    hosts: ['127.0.0.1'],
    ...limits,
  }).serve(server);
  await listen(server, checkListening({}));
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
    store.stop();
    v3.stop();
    process.off('uncaughtException', note).off('unhandledRejection', note).off('warning', note);
    expect(uncaught).toEqual([]);
  });
  const { port } = server.address() as AddressInfo;
  const connections = promisify(server.getConnections.bind(server));
  return { url: `${limits.tls ? 'https' : 'http'}://127.0.0.1:${port}`, store, member, v3, server, connections };
}

const watchersOf = ({ store, v3 }: OpenServer): number => store.watchers + v3.watchers;

/** Waits until there is no watcher and no open connection. */
export const nothingLeft = (etcd: OpenServer): Promise<unknown> =>
  until(
    async () => ({ watchers: watchersOf(etcd), connections: await etcd.connections() }),
    ({ watchers, connections }) => watchers === 0 && connections === 0,
  );

/** Waits until there are `count` watchers. */
export const waiting = (etcd: OpenServer, count: number): Promise<number> =>
  until(
    () => watchersOf(etcd),
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
