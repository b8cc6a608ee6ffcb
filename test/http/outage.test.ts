import { expect, onTestFinished, test, vi } from 'vitest';
import { type Source, sharedAbortController } from '../../src/base/cancellation.ts';
import { EtcdConnectionFailed } from '../../src/errors.ts';
import { RateLimit } from '../../src/http/failover/rate-limit.ts';
import { connect, rejection, serve } from '../support/clients.ts';
import { mostInASecond, recordRequests } from '../support/request-times.ts';
import { answer, inTurn, refuse, silent, type TcpHandler } from '../support/tcp-server.ts';
import { until } from '../support/until.ts';
import { file, got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const OTHER = '/_locks/y/00000000000000000005';
const good = answer(rawAnswer(200, got(KEY)));
const removed = answer(rawAnswer(200, { action: 'compareAndDelete', node: file(KEY) }));

test('a member that stays silent delays few calls', async () => {
  let handlers: [TcpHandler, TcpHandler] = [refuse, refuse];
  const dead = await serve((...args) => handlers[0](...args));
  const back = await serve((...args) => handlers[1](...args));
  const client = connect({ endpoints: [dead.url, back.url] });
  await rejection(client.get(KEY), EtcdConnectionFailed);
  const asked = dead.requests.length;
  handlers = [silent, removed];
  const calls = Array.from({ length: 20 }, () => client.delete(KEY, { prevValue: 'u1', attemptTimeout: 2 }));
  await Promise.all(calls);
  expect(dead.requests.length - asked).toBeLessThan(10);
});

test('a silent member that is the only one left to ask delays few calls', async () => {
  const admit = RateLimit.prototype.admit;
  let handlers: [TcpHandler, TcpHandler, TcpHandler] = [refuse, silent, silent];
  const dead = await serve((...args) => handlers[0](...args));
  const back = await serve((...args) => handlers[1](...args));
  const last = await serve((...args) => handlers[2](...args));
  const client = connect({ endpoints: [dead, back, last].map(({ url }) => url) });
  const abort = sharedAbortController();
  const first = client.get(KEY, { attemptTimeout: 10, signal: abort.signal }).catch((reason: unknown) => reason);
  await back.nextRequest();
  // Calls that notice the outage only now have one member left to ask.
  const limited = new Set<Source>();
  const spy = vi.spyOn(RateLimit.prototype, 'admit').mockImplementation(function (this: RateLimit, ending, ref) {
    if (this.isOutage) limited.add(ending);
    return admit.call(this, ending, ref);
  });
  onTestFinished(() => spy.mockRestore());
  const calls = Array.from({ length: 20 }, () => client.get(KEY, { attemptTimeout: 0.1 }));
  await until(
    () => limited.size,
    (size) => size >= calls.length,
  );
  handlers = [silent, good, silent];
  await Promise.all(calls);
  expect(dead.requests.length).toBeLessThan(10);
  abort.abort('over');
  expect(await first).toBe('over');
});

test('once all members have failed, the one that failed longest ago is asked first', async () => {
  const reset = await serve(inTurn(refuse, good));
  const members = [reset, await serve(silent), await serve(silent)];
  const client = connect({ endpoints: members.map(({ url }) => url) });
  await client.get(KEY, { attemptTimeout: 0.2 });
  expect(members.map(({ requests }) => requests.length)).toEqual([2, 1, 1]);
});

test('a request that was lost before a member’s later answer does not make that member fail', async () => {
  const dead = await serve(refuse);
  const back = await serve(inTurn(silent, good));
  const client = connect({ endpoints: [dead.url, back.url] });
  const lost = client.delete(KEY, { prevValue: 'u1', attemptTimeout: 0.5 });
  await back.nextRequest();
  await client.get(KEY);
  await rejection(lost, EtcdConnectionFailed);
  const asked = dead.requests.length;
  await client.get(KEY);
  expect(dead.requests.length).toBe(asked);
});

test('members that fail one after the other, while others answer, cause no outage', async () => {
  const outage = vi.spyOn(RateLimit.prototype, 'startOutage');
  onTestFinished(() => outage.mockRestore());
  const members = [
    await serve(inTurn(refuse, good)),
    await serve(inTurn(refuse, good)),
    await serve(inTurn(good, refuse)),
  ];
  const client = connect({ endpoints: members.map(({ url }) => url) });
  await client.get(KEY);
  expect(members.map(({ requests }) => requests.length)).toEqual([1, 1, 1]);
  await client.get(KEY);
  // The last one is asked again on a new connection.
  expect(members.map(({ requests }) => requests.length)).toEqual([2, 1, 3]);
  expect(outage).not.toHaveBeenCalled();
});

test('members that are silent for longer than the hedge delay get at most 5 requests in any second', async () => {
  const endpoints = [await serve(silent), await serve(silent)].map(({ url }) => url);
  const times = recordRequests(endpoints);
  const client = connect({ endpoints });
  const abort = sharedAbortController();
  const calls = Array.from({ length: 10 }, () => client.get(KEY, { attemptTimeout: 0.1, signal: abort.signal }));
  const ended = Promise.allSettled(calls);
  await until(
    () => times.length,
    (count) => count >= 30,
    { timeout: 10_000 },
  );
  abort.abort();
  await ended;
  // Before the outage is known, each call has asked each member.
  expect(mostInASecond(times.slice(21))).toBeLessThanOrEqual(5);
});

test('unanswered reads delay neither a write nor another read', async () => {
  const etcd = await serve((socket, request) => {
    if (request.startsWith('DELETE')) return removed(socket, request);
    if (request.includes(OTHER)) return answer(rawAnswer(200, got(OTHER)))(socket, request);
  });
  const client = connect({ endpoints: etcd.url });
  const abort = sharedAbortController();
  const reads = Array.from({ length: 70 }, () => client.get(KEY, { signal: abort.signal }));
  const ended = Promise.allSettled(reads);
  await until(
    () => etcd.requests.length,
    (count) => count >= 70,
  );
  await client.get(OTHER);
  await client.delete(KEY, { prevValue: 'u1' });
  abort.abort();
  await ended;
});
