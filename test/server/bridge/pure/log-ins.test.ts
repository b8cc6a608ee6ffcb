import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { EtcdConnectionFailed, EtcdInsufficientPermissions } from '../../../../src/errors.ts';
import { LogIns } from '../../../../src/server/bridge/users/log-ins.ts';
import { Overloaded } from '../../../../src/server/served-keys.ts';
import { gate } from '../../../support/gate.ts';
import { rejection } from '../../../support/locks.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

/** A login that ends when the test says so. */
function slow() {
  const over = gate();
  const logIn = vi.fn(() => over.opened);
  return { logIn, end: over.open };
}

test('four logins run at a time, and the others in the order of their arrival', async () => {
  const [logIns, all] = [new LogIns(), Array.from({ length: 6 }, slow)];
  const outcomes = all.map(({ logIn }, i) => logIns.run(`user ${i}`, logIn));
  const begun = () => all.map(({ logIn }) => logIn.mock.calls.length);
  await vi.advanceTimersByTimeAsync(0);
  expect(begun()).toEqual([1, 1, 1, 1, 0, 0]);
  all[2]?.end();
  await outcomes[2];
  await vi.advanceTimersByTimeAsync(0);
  expect(begun()).toEqual([1, 1, 1, 1, 1, 0]);
  for (const { end } of all) end();
  await Promise.all(outcomes);
  expect(begun()).toEqual([1, 1, 1, 1, 1, 1]);
});

test('a refusal is remembered for five seconds, a failure is not', async () => {
  const logIns = new LogIns();
  const refusal = new EtcdInsufficientPermissions('wrong password');
  const logIn = vi.fn(() => Promise.reject(refusal));
  expect(await rejection(logIns.run('user', logIn))).toBe(refusal);
  await vi.advanceTimersByTimeAsync(4900);
  expect(await rejection(logIns.run('user', logIn))).toBe(refusal);
  expect(logIn).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(200);
  logIn.mockRejectedValue(new EtcdConnectionFailed('no answer') as never);
  await rejection(logIns.run('user', logIn));
  await rejection(logIns.run('user', logIn));
  expect(logIn).toHaveBeenCalledTimes(3);
});

test('of very many refusals, the latest 1,000 are remembered', async () => {
  const logIns = new LogIns();
  const refuse = vi.fn(() => Promise.reject(new EtcdInsufficientPermissions('wrong password')));
  for (let i = 0; i < 1100; i += 1) await rejection(logIns.run(`user ${i}`, refuse));
  await rejection(logIns.run('user 1099', refuse));
  await rejection(logIns.run('user 100', refuse));
  expect(refuse).toHaveBeenCalledTimes(1100);
  await rejection(logIns.run('user 99', refuse));
  expect(refuse).toHaveBeenCalledTimes(1101);
});

test('at most 200 logins wait, and each for ten seconds', async () => {
  const [logIns, { logIn }] = [new LogIns(), slow()];
  const outcomes = Array.from({ length: 204 }, (_, i) => rejection(logIns.run(`user ${i}`, logIn)));
  await vi.advanceTimersByTimeAsync(0);
  expect(await rejection(logIns.run('one more', logIn))).toBeInstanceOf(Overloaded);
  await vi.advanceTimersByTimeAsync(10_100);
  expect(await Promise.all(outcomes.slice(4))).toEqual(Array.from({ length: 200 }, () => expect.any(Overloaded)));
  expect(logIn).toHaveBeenCalledTimes(4);
});

test('the names of credentials do not reveal them, and differ between bridges', () => {
  const [one, other] = [new LogIns(), new LogIns()];
  expect(one.nameOf('user:secret')).toBe(one.nameOf('user:secret'));
  expect(one.nameOf('user:secret')).not.toBe(other.nameOf('user:secret'));
  expect(one.nameOf('user:secret')).not.toContain('secret');
});
