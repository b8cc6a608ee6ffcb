import { describe, expect, test } from 'vitest';
import { sharedAbortController } from '../../src/base/cancellation.ts';
import { EtcdConnectionFailed } from '../../src/errors.ts';
import { closedEndpoint, connect, rejection, serve } from '../support/clients.ts';
import { mostInASecond, recordRequests } from '../support/request-times.ts';
import { answer, refuse, silent } from '../support/tcp-server.ts';
import { until } from '../support/until.ts';
import { failed, got, rawAnswer } from '../support/v2-answers.ts';

const KEY = '/_locks/x/00000000000000000004';

describe('a client during an outage', () => {
  test.each([
    ['refuses connections', refuse],
    ['has no quorum', answer(rawAnswer(500, failed(300)))],
    ['does not answer', silent],
  ])('sends at most 5 requests in any second, however many calls there are, if each member %s', async (_, handler) => {
    const endpoints = (await Promise.all([serve(handler), serve(handler), serve(handler)])).map(({ url }) => url);
    const times = recordRequests(endpoints);
    const client = connect({ endpoints, readTimeout: 0.3 });
    // The first call starts the outage.
    await rejection(client.get(KEY), EtcdConnectionFailed);
    const begun = times.length;
    const abort = sharedAbortController();
    const calls = Array.from({ length: 30 }, async (_, i) => {
      while (!abort.signal.aborted) {
        const call =
          i % 2
            ? client.get(KEY, { signal: abort.signal })
            : client.renew(KEY, { prevValue: 'u', prevIndex: 4, ttl: 60, signal: abort.signal });
        await call.catch(() => {});
      }
    });
    await until(
      () => times.length - begun,
      (count) => count >= 12,
      { timeout: 20_000 },
    );
    abort.abort();
    await Promise.all(calls);
    expect(mostInASecond(times.slice(begun))).toBeLessThanOrEqual(5);
  });

  test('sends the requests of all calls as soon as a member answers', async () => {
    let up = false;
    const good = answer(rawAnswer(200, got(KEY)));
    const etcd = await serve((socket, request) => (up ? good : refuse)(socket, request));
    const client = connect({ endpoints: [etcd.url, await closedEndpoint()] });
    await rejection(client.get(KEY), EtcdConnectionFailed);
    up = true;
    await Promise.all(Array.from({ length: 200 }, () => client.get(KEY)));
    await until(
      () => etcd.requests.length,
      (count) => count >= 200,
    );
  });
});
