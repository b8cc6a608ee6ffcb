import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from 'vitest';
import { Scope } from '../../../src/base/cancellation.ts';
import { PasswordRefused } from '../../../src/base/password-refused.ts';
import { EtcdConnectionFailed, EtcdInsufficientPermissions, mayPass } from '../../../src/errors.ts';
import { Password } from '../../../src/http/password.ts';
import { rejection } from '../../support/locks.ts';

const refusal = () => new EtcdInsufficientPermissions('refused', { errorCode: 110, httpStatus: 401 });
const limits = () => ({ ending: new Scope(), timeout: 60, lane: 'call' });

/** A server that accepts one password, and a function that gives what `given` holds at the moment. */
function setUp(right: string, ...given: unknown[]) {
  const tried: string[] = [];
  let asked = 0;
  const password = new Password(() => {
    asked += 1;
    const next = given.length > 1 ? given.shift() : given[0];
    if (next instanceof Error) throw next;
    return next as string;
  });
  const server = { right };
  const attempt = async (text: string) => {
    tried.push(text);
    if (text !== server.right) throw refusal();
    return 'done';
  };
  return { tried, server, asked: () => asked, use: () => password.use(limits(), attempt) };
}

test('a string is sent once, and its refusal is the error', async () => {
  const error = refusal();
  const use = new Password('old').use(limits(), () => Promise.reject(error));
  expect(await rejection(use)).toBe(error);
});

describe('a function', () => {
  test('is called before the first use, and not again while etcd accepts the password', async () => {
    const { use, asked, tried } = setUp('a', 'a');
    for (let i = 0; i < 3; i += 1) expect(await use()).toBe('done');
    expect([asked(), tried]).toEqual([1, ['a', 'a', 'a']]);
  });

  test('is called again when etcd refuses, and its new password is sent once', async () => {
    const { use, server, tried, asked } = setUp('a', 'a', 'b');
    await use();
    server.right = 'b';
    expect(await use()).toBe('done');
    expect([asked(), tried]).toEqual([2, ['a', 'a', 'b']]);
  });

  test('that gives the refused password again causes an error that a hold may survive, and no request', async () => {
    const { use, tried, asked } = setUp('b', 'a');
    const error = await rejection(use());
    expect(error).toBeInstanceOf(PasswordRefused);
    expect(error).toMatchObject({ name: 'EtcdInsufficientPermissions', message: 'refused', errorCode: 110 });
    expect([mayPass(error), asked(), tried]).toEqual([false, 2, ['a']]);
  });

  test('that gives another wrong password causes one further request', async () => {
    const { use, tried } = setUp('c', 'a', 'b');
    expect(await rejection(use())).toBeInstanceOf(PasswordRefused);
    expect(tried).toEqual(['a', 'b']);
  });

  test('is called once for many calls at the same time, at the start and after a change', async () => {
    const { use, server, asked } = setUp('a', 'a', 'b');
    const many = () => Promise.all(Array.from({ length: 50 }, use));
    expect(new Set(await many())).toEqual(new Set(['done']));
    expect(asked()).toBe(1);
    server.right = 'b';
    expect(new Set(await many())).toEqual(new Set(['done']));
    expect(asked()).toBe(2);
  });

  test('that throws causes an error with what it threw as the cause, and is asked again by the next call', async () => {
    const thrown = new Error('the vault is sealed');
    const { use } = setUp('a', thrown, 'a');
    const error = await rejection(use());
    expect(error).toBeInstanceOf(EtcdInsufficientPermissions);
    expect(error).toMatchObject({
      message: 'the function for the password failed: the vault is sealed',
      cause: thrown,
    });
    expect(await use()).toBe('done');
  });

  test.each([undefined, 7, Buffer.from('secret'), null])(
    'that returns %o causes an error without it',
    async (given) => {
      const { message } = (await rejection(setUp('a', given).use())) as Error;
      expect(message).toBe(`the function for the password must return a string, got ${typeof given}`);
    },
  );

  test('that is slow costs a call its time, and its late answer serves the next call', async () => {
    let give: (text: string) => void = () => {};
    const password = new Password(
      () =>
        new Promise((resolve) => {
          give = resolve;
        }),
    );
    const error = await rejection(password.use({ ...limits(), timeout: 0.01 }, async () => 'done'));
    expect(error).toBeInstanceOf(EtcdConnectionFailed);
    expect(error).toMatchObject({ outcomeUnknown: false });
    give('a');
    expect(await password.use(limits(), async (text) => text)).toBe('a');
  });

  test('that is slow does not delay the end of a call', async () => {
    const password = new Password(() => new Promise(() => {}));
    const ending = new Scope();
    const used = rejection(password.use({ ...limits(), ending }, async () => 'done'));
    ending.abort(new Error('closed'));
    expect(await used).toHaveProperty('message', 'closed');
  });

  test('runs in no async context of a caller, because callers share its answer', async () => {
    const storage = new AsyncLocalStorage<string>();
    let seen: string | undefined = 'not called';
    const password = new Password(async () => {
      seen = storage.getStore();
      return 'a';
    });
    await storage.run('of a caller', () => password.use(limits(), async () => 'done'));
    expect(seen).toBeUndefined();
  });
});

test('an error that is no refusal does not ask the function', async () => {
  let asked = 0;
  const password = new Password(() => {
    asked += 1;
    return 'a';
  });
  const down = new EtcdConnectionFailed('down');
  expect(await rejection(password.use(limits(), () => Promise.reject(down)))).toBe(down);
  expect(asked).toBe(1);
});
