import { randomUUID } from 'node:crypto';
import { expect, inject, onTestFinished } from 'vitest';
import { EtcdKeysLeft } from '../../src/index.ts';
import { V2Client } from '../../src/v2/client.ts';
import type { V2ClientOptions } from '../../src/v2/options.ts';
import { type EtcdProxy, startProxy } from './proxy.ts';
import { until } from './until.ts';

/** Returns a client, by default of the shared server, that asks its endpoints in the order given; the end of the test closes it. */
export function useClient(options: V2ClientOptions = {}): V2Client {
  const client = new V2Client({ endpoints: inject('etcd'), randomizeEndpoints: false, ...options });
  onTestFinished(() =>
    client.close({ timeout: 0 }).catch((error) => {
      if (!(error instanceof EtcdKeysLeft)) throw error;
    }),
  );
  return client;
}

/** Starts a proxy in front of the shared server; the end of the test stops it. */
export async function useProxy(target = inject('etcd')): Promise<EtcdProxy> {
  const proxy = await startProxy(target);
  onTestFinished(() => proxy.stop());
  return proxy;
}

/** A name no other test uses. */
export const freshName = (): string => `test-${randomUUID()}`;

export interface RawEntry {
  readonly key: string;
  readonly value: string;
  readonly dir?: boolean;
  readonly ttl?: number;
  readonly expiration?: string;
  readonly modifiedIndex: number;
}

/** Sends one plain request to the keys API, so that a test does not use the client to check the client. */
export async function raw(
  method: string,
  path: string,
  form?: Record<string, string>,
  etcd = inject('etcd'),
): Promise<{ status: number; body: Record<string, never> & { node: RawEntry & { nodes?: RawEntry[] } } }> {
  const body = form ? new URLSearchParams(form) : null;
  const response = await fetch(`${etcd}/v2/keys${path}`, { method, body });
  return { status: response.status, body: (await response.json()) as never };
}

/** The path of a key or directory in a URL. */
export const escaped = (path: string): string => path.split('/').map(encodeURIComponent).join('/');

/** The entries directly in a directory as etcd has them, in order; none if there is no directory. */
export async function entriesIn(directory: string, etcd = inject('etcd')): Promise<RawEntry[]> {
  const { body } = await raw('GET', `${escaped(directory)}?sorted=true&quorum=true`, undefined, etcd);
  const files = (body.node?.nodes ?? []).filter(({ dir }) => !dir);
  if (etcd !== inject('etcd') || etcd === inject('plain')) return files;
  // A bridge shows the TTL of an entry only if that entry is read.
  const read = files.map(async (file) => (await raw('GET', escaped(file.key), undefined, etcd)).body.node ?? file);
  return Promise.all(read);
}

/** The entries in the queue of a lock. */
export const queueOn = (name: string, etcd = inject('etcd')): Promise<RawEntry[]> => entriesIn(`/_locks/${name}`, etcd);

/** Reads a key; returns a function that waits until it is gone, and resolves to the action, such as `expire`. */
export async function endOf(
  key: string,
  etcd = inject('etcd'),
  headers: Record<string, string> = {},
): Promise<() => Promise<string>> {
  const url = `${etcd}/v2/keys${key}`;
  let index = Number((await fetch(url, { headers })).headers.get('x-etcd-index'));
  return async () => {
    for (;;) {
      const response = await fetch(`${url}?wait=true&waitIndex=${index + 1}`, { headers });
      const { action, node } = (await response.json()) as { action: string; node: { modifiedIndex: number } };
      // A renewal whose member does not answer in time is repeated as a write, which is an event.
      if (action !== 'set' && action !== 'update' && action !== 'compareAndSwap') return action;
      index = node.modifiedIndex;
    }
  };
}

/** Matches the TTL left of an entry that was written with `seconds`. On a busy machine, some seconds have passed since then. */
export const recentTtl = (seconds: number): unknown =>
  expect.toSatisfy((left: number) => left <= seconds && left > seconds - 25);

/** Waits until that many entries are directly in the directory. */
export const untilEntries = (directory: string, count: number, etcd = inject('etcd')): Promise<RawEntry[]> =>
  until(
    () => entriesIn(directory, etcd),
    (entries) => entries.length === count,
  );

/** Waits until that many entries are in the queue of a lock. */
export const untilQueued = (name: string, count: number, etcd = inject('etcd')): Promise<RawEntry[]> =>
  untilEntries(`/_locks/${name}`, count, etcd);

/** Resolves when this client begins its next watch: it has read the queue by then. */
export function nextWatch(client: V2Client): Promise<void> {
  const watch = client.watch.bind(client);
  return new Promise((resolve) => {
    client.watch = (...args) => {
      client.watch = watch;
      resolve();
      return watch(...args);
    };
  });
}

/** Returns what a promise rejected with; throws if it resolved. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('expected a rejection');
}
