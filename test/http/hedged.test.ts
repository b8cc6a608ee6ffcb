import { describe, expect, test } from 'vitest';
import { EtcdConnectionFailed, EtcdKeyNotFound } from '../../src/errors.ts';
import { useBeatClock } from '../support/beat-clock.ts';
import { connect, rejection, serve, serveSilence } from '../support/clients.ts';
import { gate } from '../support/gate.ts';
import { answer, answerAfter, inTurn, refuse, silent, type TcpServer } from '../support/tcp-server.ts';
import { failed, file, got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';
const good = rawAnswer(200, got(KEY));

describe('a slow read', () => {
  test('is also sent to the next member, and the first answer wins', async () => {
    const { opened, open } = gate();
    const slow = await serve(answerAfter(opened, good));
    const fast = await serve(answer(rawAnswer(200, got(KEY, { value: 'fast' }))));
    const client = connect({ endpoints: [slow.url, fast.url] });
    expect((await client.get(KEY, { attemptTimeout: 0.1 })).node.value).toBe('fast');
    open();
    await client.get(KEY);
    expect([slow.requests.length, fast.requests.length]).toEqual([1, 2]);
  });

  test('makes the client prefer the member that answered, even if the key does not exist', async () => {
    const dead = await serve(silent);
    const etcd = await serve(answer(rawAnswer(404, failed(100))));
    const client = connect({ endpoints: [dead.url, etcd.url] });
    await rejection(client.get(KEY, { attemptTimeout: 0.1 }), EtcdKeyNotFound);
    await rejection(client.get(KEY), EtcdKeyNotFound);
    expect(dead.requests.length).toBe(1);
  });

  test('still accepts the first member’s answer when the next member does not answer either', async () => {
    const { opened, open } = gate();
    const slow = await serve(answerAfter(opened, good));
    const dead = await serve(silent);
    const client = connect({ endpoints: [slow.url, dead.url] });
    const call = client.get(KEY, { attemptTimeout: 0.1 });
    await dead.nextRequest();
    open();
    expect((await call).node.key).toBe(KEY);
  });

  test('is sent again to a single member, which may have lost the request in an election', async () => {
    const etcd = await serve(inTurn(silent, answer(good)));
    await connect({ endpoints: etcd.url }).get(KEY, { attemptTimeout: 0.1 });
    expect(etcd.requests.length).toBe(2);
  });

  test('ends the other requests when one is answered', async () => {
    const dead = await serveSilence();
    const fast = await serve(answer(good));
    const client = connect({ endpoints: [dead.url, fast.url] });
    await client.get(KEY, { attemptTimeout: 0.1 });
    expect(dead.requests.length).toBe(1);
    await dead.allClosed();
  });
});

describe('a hedged read that nobody answers', () => {
  useBeatClock();

  test('fails after its timeout, with the failure of each request', async () => {
    const [a, b] = [await serve(silent), await serve(silent)];
    const client = connect({ endpoints: [a.url, b.url], readTimeout: 0.5 });
    const error = await rejection(client.get(KEY, { attemptTimeout: 0.1 }), EtcdConnectionFailed);
    expect(error.failures.length).toBe(a.requests.length + b.requests.length);
    expect(error.failures.length).toBeGreaterThan(2);
    expect(error.failures[0]?.error.message).toBe('no answer in 0.5 s');
    for (const { error: each } of error.failures) expect(each.message).toMatch(/^no answer in 0\.\d+ s$/);
    const line = ({ url }: TcpServer) => `${url}: no answer in 0\\.\\d+ s \\(\\d+ times\\)`;
    expect(error.message).toMatch(new RegExp(`^no member could answer: ${line(a)}; ${line(b)}$`));
  });
});

describe('a slow removal with an index', () => {
  const removal = { prevValue: 'u1', prevIndex: 4, attemptTimeout: 0.1 };
  const removed = rawAnswer(200, { action: 'compareAndDelete', node: file(KEY) });

  test('is also sent to the next member, and still accepts the first member’s answer', async () => {
    const { opened, open } = gate();
    const slow = await serve(answerAfter(opened, removed));
    const dead = await serve(silent);
    const call = connect({ endpoints: [slow.url, dead.url] }).delete(KEY, removal);
    await dead.nextRequest();
    open();
    expect((await call).action).toBe('compareAndDelete');
  });

  test('ends when another member finds no key', async () => {
    const dead = await serve(silent);
    const etcd = await serve(answer(rawAnswer(404, failed(100))));
    await rejection(connect({ endpoints: [dead.url, etcd.url] }).delete(KEY, removal), EtcdKeyNotFound);
  });
});

describe('a slow renewal', () => {
  const renewal = { prevValue: 'u1', prevIndex: 4, ttl: 60, attemptTimeout: 0.1 };
  const renewed = rawAnswer(200, { action: 'compareAndSwap', node: file(KEY) });
  /** Counts only writes, not version requests. */
  const writesTo = ({ requests }: { requests: readonly string[] }) =>
    requests.filter((request) => request.startsWith('PUT')).length;

  test('is also sent to the next member, and still accepts the first member’s answer', async () => {
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

  test('fails after the timeout of the whole call, with the failure of each request', async () => {
    const [a, b] = [await serve(silent), await serve(silent)];
    const client = connect({ endpoints: [a.url, b.url] });
    const error = await rejection(client.renew(KEY, { ...renewal, timeout: 0.5 }), EtcdConnectionFailed);
    expect(new Set(error.failures.map(({ endpoint }) => endpoint))).toEqual(new Set([a.url, b.url]));
  });

  test('begins with a member that the call before has not asked, if that call has ended without an answer', async () => {
    const [a, b] = [await serve(silent), await serve(silent)];
    const etcd = await serve((socket, request) =>
      request.startsWith('PUT') ? answer(renewed)(socket, request) : refuse(socket, request),
    );
    const client = connect({ endpoints: [a.url, b.url, etcd.url] });
    const first = rejection(client.renew(KEY, { ...renewal, attemptTimeout: 0.4, timeout: 0.5 }), EtcdConnectionFailed);
    await b.nextRequest();
    await first;
    const asked = (): number[] => [a, b].map(({ requests }) => requests.length);
    const before = asked();
    await client.renew(KEY, { ...renewal, attemptTimeout: 5 });
    expect(asked()).toEqual(before);
  });
});

test('any other write is never sent to two members at once', async () => {
  const { opened, open } = gate();
  const slow = await serve(answerAfter(opened, rawAnswer(200, { action: 'compareAndDelete', node: file(KEY) })));
  const fast = await serve(answer(good));
  const client = connect({ endpoints: [slow.url, fast.url] });
  const call = client.delete(KEY, { prevValue: 'u1' });
  await slow.nextRequest();
  // When this later read is answered, it has been sent to both members.
  await client.get(KEY, { attemptTimeout: 0.1 });
  expect(fast.requests.map((request) => request.split(' ')[0])).toEqual(['GET']);
  open();
  await call;
});
