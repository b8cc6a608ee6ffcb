// The stack of a rejected call shows who made the call, wherever its error was created.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { describe, expect, onTestFinished, test } from 'vitest';
import * as api from '../../src/index.ts';
import type { V2Client } from '../../src/v2/client.ts';
import { aborted } from '../suites/lock/locks.ts';
import { closedEndpoint, serve } from '../support/clients.ts';
import { freshName, raw, rejection, untilQueued, useClient } from '../support/locks.ts';

const KEY = '/_locks/x/1';

interface Setting {
  /** Of a cluster that cannot be reached. */
  readonly down: V2Client;
  /** Of a server that is not etcd. */
  readonly odd: V2Client;
  readonly up: V2Client;
  /** A lock that another client holds. */
  readonly taken: string;
}

async function setUp(): Promise<Setting> {
  const taken = freshName();
  await raw('POST', `/_locks/${taken}`, { value: 'another holder', ttl: '600' });
  onTestFinished(async () => void (await raw('DELETE', `/_locks/${taken}?recursive=true`)));
  const { url } = await serve((socket) => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'));
  const down = useClient({ endpoints: await closedEndpoint() });
  return { down, odd: useClient({ endpoints: url }), up: useClient(), taken };
}

type Call = (setting: Setting) => Promise<unknown>;

const calls: Record<string, Call> = {
  'request() behind another holder': ({ up, taken }) => new api.LockManager(up).request(taken, { timeout: 0.1 }, fail),
  'request() behind another request': async ({ up, taken }) => {
    const first = rejection(new api.LockManager(up).request(taken, { timeout: 1 }, fail));
    await theCaller(() => new api.LockManager(up).request(taken, { timeout: 0.1 }, fail)).finally(() => first);
  },
  'request() without a server': ({ down }) => new api.LockManager(down).request('x', fail),
  'request() that must not wait': ({ down }) => new api.LockManager(down).request('x', { ifAvailable: true }, fail),
  'request() that loses its lock': ({ up }) =>
    new api.LockManager(up, { ttl: 2 }).request(freshName(), async ({ key, signal }) => {
      await raw('DELETE', key);
      await aborted(signal);
    }),
  'assertHeld() after a loss': async ({ up }) => {
    const held = await new api.LockManager(up, { ttl: 2 }).acquire(freshName());
    await raw('DELETE', held.key);
    await aborted(held.signal);
    await theCaller(async () => held.assertHeld());
  },
  'acquire() of a manager': ({ up, taken }) => new api.LockManager(up).acquire(taken, { timeout: 0.1 }),
  'query()': ({ down }) => new api.LockManager(down).query('x'),
  'query() of all locks': ({ down }) => new api.LockManager(down).query(),
  'leader() of an election': ({ down }) => new api.LockManager(down).elect('x').leader(),
  'observe() of an election': ({ down }) => new api.LockManager(down).elect('x').observe().next(),
  'campaign() of an election': ({ odd }) => new api.LockManager(odd).elect('x').campaign().next(),
  'a loop over a campaign': async ({ odd }) => {
    for await (const _ of new api.LockManager(odd).elect('x').campaign()) fail();
  },
  'acquire() of a Lock': ({ up, taken }) => new api.Lock(up, taken).acquire({ timeout: 0.1 }),
  'release()': ({ down }) => new api.Lock(down, 'x', { uuid: 'u1' }).release(),
  'isAcquired()': async ({ up }) => {
    const lock = new api.Lock(up, freshName());
    await lock.acquire();
    await up.close({ timeout: 1 }).catch(() => {});
    await theCaller(() => lock.isAcquired());
  },
  'setUuid()': ({ down }) => new api.Lock(down, 'x').setUuid('u1'),
  'contenders()': ({ down }) => new api.Lock(down, 'x').contenders(),
  'get()': ({ down }) => down.get(KEY),
  'set()': ({ down }) => down.set(KEY, 'u1'),
  'createInOrder()': ({ down }) => down.createInOrder(KEY, 'u1'),
  'renew()': ({ down }) => down.renew(KEY, { prevValue: 'u1', prevIndex: 4, ttl: 60 }),
  'delete()': ({ down }) => down.delete(KEY),
  'watch()': ({ down }) => down.watch(KEY, { after: 1 }),
  'version()': ({ down }) => down.version(),
};

const fail = (): never => {
  throw new Error('the callback must not run');
};

/** Awaits a call. The tests look for the name of this function. */
async function theCaller(call: () => Promise<unknown>): Promise<unknown> {
  return await call();
}

const callersIn = (error: unknown): number => ((error as Error).stack ?? '').split('theCaller').length - 1;

test.each(Object.entries(calls))('the error of %s shows its caller', async (_, call) => {
  const setting = await setUp();
  const error = await rejection(theCaller(() => call(setting)));
  expect(error).toBeInstanceOf(api.EtcdException);
  expect(callersIn(error)).toBeGreaterThan(0);
  expect((error as Error).stack).toContain(`${(error as Error).name}: ${(error as Error).message}\n`);
});

test('the error shows its caller while request() is traced', async () => {
  const { up, taken } = await setUp();
  const onError = () => {};
  subscribe('tracing:etcd-v2-lock:request:error', onError);
  onTestFinished(() => void unsubscribe('tracing:etcd-v2-lock:request:error', onError));
  const locks = new api.LockManager(up);
  expect(callersIn(await rejection(theCaller(() => locks.request(taken, { timeout: 0.1 }, fail))))).toBe(1);
});

test('each call that close() ends has an error that shows its own caller', async () => {
  const { up, taken } = await setUp();
  const locks = new api.LockManager(up);
  const one = rejection(theCaller(() => locks.request(taken, fail)));
  const other = rejection(locks.acquire(taken));
  const lock = rejection(theCaller(() => new api.Lock(up, taken).acquire()));
  await untilQueued(taken, 3);
  await up.close();
  const errors = await Promise.all([one, other, lock]);
  for (const error of errors) expect(error).toBeInstanceOf(api.EtcdClientClosed);
  expect(errors.map(callersIn)).toEqual([1, 0, 1]);
  expect(callersIn(await rejection(theCaller(() => up.get(KEY))))).toBe(1);
});

describe('the stack of a foreign error is not touched', () => {
  const own = () => {
    const error = new api.EtcdConnectionFailed('of the user');
    error.stack = 'as it was';
    return error;
  };

  test('if the callback throws it', async () => {
    const { up } = await setUp();
    const error = own();
    const locks = new api.LockManager(up);
    const throwing = () => Promise.reject(error);
    expect(await rejection(locks.request(freshName(), throwing))).toBe(error);
    await rejection(locks.request(freshName(), (held) => locks.request(held.name, { reentrant: true }, throwing)));
    expect(error.stack).toBe('as it was');
  });

  test('if it is the reason of the caller’s signal', async () => {
    const { up, taken } = await setUp();
    const error = own();
    const abort = new AbortController();
    const { signal } = abort;
    const waiting = [
      new api.LockManager(up).request(taken, { signal }, fail),
      new api.LockManager(up).acquire(taken, { signal }),
      new api.Lock(up, taken).acquire({ signal }),
      up.watch(`/_locks/${taken}/1`, { signal }),
    ].map(rejection);
    abort.abort(error);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([error]));
    expect(error.stack).toBe('as it was');
  });
});
