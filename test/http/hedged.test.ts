import { describe, expect, test } from 'vitest';
import { EtcdConnectionFailed, EtcdKeyNotFound } from '../../src/errors.ts';
import { connect, rejection, serve, serveSilence } from '../support/clients.ts';
import { gate } from '../support/gate.ts';
import { answer, answerAfter, inTurn, refuse, silent } from '../support/tcp-server.ts';
import { failed, file, got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const good = rawAnswer(200, got(KEY));

describe('a read that takes long', () => {
  test('is asked of the next member, too, and whichever answers first wins', async () => {
    const { opened, open } = gate();
    const slow = await serve(answerAfter(opened, good));
    const fast = await serve(answer(rawAnswer(200, got(KEY, { value: 'fast' }))));
    const client = connect({ endpoints: [slow.url, fast.url] });
    expect((await client.get(KEY, { attemptTimeout: 0.1 })).node.value).toBe('fast');
    open();
    await client.get(KEY);
    expect([slow.requests.length, fast.requests.length]).toEqual([1, 2]);
  });

  test('is asked of the member that answered from then on, also where the answer was that there is no such key', async () => {
    const dead = await serve(silent);
    const etcd = await serve(answer(rawAnswer(404, failed(100))));
    const client = connect({ endpoints: [dead.url, etcd.url] });
    await rejection(client.get(KEY, { attemptTimeout: 0.1 }), EtcdKeyNotFound);
    await rejection(client.get(KEY), EtcdKeyNotFound);
    expect(dead.requests.length).toBe(1);
  });

  test('is still waited for when the next member does not answer either', async () => {
    const { opened, open } = gate();
    const slow = await serve(answerAfter(opened, good));
    const dead = await serve(silent);
    const client = connect({ endpoints: [slow.url, dead.url] });
    const call = client.get(KEY, { attemptTimeout: 0.1 });
    await dead.nextRequest();
    open();
    expect((await call).node.key).toBe(KEY);
  });

  test('is asked of the same member again where there is no other: it may have lost the first to an election', async () => {
    const etcd = await serve(inTurn(silent, answer(good)));
    await connect({ endpoints: etcd.url }).get(KEY, { attemptTimeout: 0.1 });
    expect(etcd.requests.length).toBe(2);
  });

  test('leaves no request behind once one is answered', async () => {
    const dead = await serveSilence();
    const fast = await serve(answer(good));
    const client = connect({ endpoints: [dead.url, fast.url] });
    await client.get(KEY, { attemptTimeout: 0.1 });
    expect(dead.requests.length).toBe(1);
    await dead.allClosed();
  });

  test('fails once the first one asked had its time, with what became of each', async () => {
    const [a, b] = [await serve(silent), await serve(silent)];
    const client = connect({ endpoints: [a.url, b.url], readTimeout: 0.5 });
    const error = await rejection(client.get(KEY, { attemptTimeout: 0.1 }), EtcdConnectionFailed);
    expect(error.failures.length).toBe(a.requests.length + b.requests.length);
    expect(error.failures.length).toBeGreaterThan(2);
    expect(error.failures[0]?.error.message).toBe('no answer within 0.5 s');
    for (const { error: each } of error.failures.slice(1))
      expect(each.message).toMatch(/^no answer (within 0\.5|for 0\.\d) s$/);
  });
});

describe('a removal bound to an index', () => {
  const removal = { prevValue: 'u1', prevIndex: 4, attemptTimeout: 0.1 };
  const removed = rawAnswer(200, { action: 'compareAndDelete', node: file(KEY) });

  test('is asked of the next member, too, and still waited for where that takes longer than it is patient', async () => {
    const { opened, open } = gate();
    const slow = await serve(answerAfter(opened, removed));
    const dead = await serve(silent);
    const call = connect({ endpoints: [slow.url, dead.url] }).delete(KEY, removal);
    await dead.nextRequest();
    open();
    expect((await call).action).toBe('compareAndDelete');
  });

  test('is over when another member finds the key gone', async () => {
    const dead = await serve(silent);
    const etcd = await serve(answer(rawAnswer(404, failed(100))));
    await rejection(connect({ endpoints: [dead.url, etcd.url] }).delete(KEY, removal), EtcdKeyNotFound);
  });
});

describe('a renewal', () => {
  const renewal = { prevValue: 'u1', prevIndex: 4, ttl: 60, attemptTimeout: 0.1 };
  const renewed = rawAnswer(200, { action: 'compareAndSwap', node: file(KEY) });
  /** Counts writes alone: the question for the version does not matter here. */
  const writesTo = ({ requests }: { requests: readonly string[] }) =>
    requests.filter((request) => request.startsWith('PUT')).length;

  test('is asked of the next member, too, and still waited for where that takes longer than it is patient', async () => {
    const { opened, open } = gate();
    const slow = await serve((socket, request) =>
      request.startsWith('PUT') ? answerAfter(opened, renewed)(socket, request) : refuse(socket, request),
    );
    const dead = await serve(silent);
    const call = connect({ endpoints: [slow.url, dead.url] }).renew(KEY, renewal);
    await dead.nextRequest();
    open();
    expect((await call).action).toBe('compareAndSwap');
    expect([writesTo(slow), writesTo(dead)]).toEqual([1, 1]);
  });

  test('fails when the time for the whole call is over, with what became of each', async () => {
    const [a, b] = [await serve(silent), await serve(silent)];
    const client = connect({ endpoints: [a.url, b.url] });
    const error = await rejection(client.renew(KEY, { ...renewal, timeout: 0.5 }), EtcdConnectionFailed);
    expect(new Set(error.failures.map(({ endpoint }) => endpoint))).toEqual(new Set([a.url, b.url]));
  });
});

test('any other write is never under way at two members at once', async () => {
  const { opened, open } = gate();
  const slow = await serve(answerAfter(opened, rawAnswer(200, { action: 'compareAndDelete', node: file(KEY) })));
  const fast = await serve(answer(good));
  const client = connect({ endpoints: [slow.url, fast.url] });
  const call = client.delete(KEY, { prevValue: 'u1' });
  await slow.nextRequest();
  // A read that begins later has been asked of both by the time it is answered.
  await client.get(KEY, { attemptTimeout: 0.1 });
  expect(fast.requests.map((request) => request.split(' ')[0])).toEqual(['GET']);
  open();
  await call;
});
