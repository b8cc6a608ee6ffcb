// What a bridge asks of etcd while many wait. bench/ measures the time and the memory.
import { expect, test } from 'vitest';
import { freshName, raw, useProxy } from '../../../support/locks.ts';
import type { ProxiedRequest } from '../../../support/proxy.ts';
import { RawConnection, request } from '../../../support/raw-connection.ts';
import { until } from '../../../support/until.ts';
import { useBridge } from '../use-bridge.ts';

/** Entries that are handed the lock one after the other. */
const HAND_OVERS = 11;

test('the requests to etcd for a hand-over do not depend on the number of waiters', async () => {
  const few = await requestsOfHandOvers(50);
  const many = await requestsOfHandOvers(200);
  expect(median(many)).toBe(median(few));
  // The removal, the read of the poll that it ends, and the listing.
  expect(median(many)).toBeLessThanOrEqual(3);
});

/** Makes a queue as python-etcd does, and hands the lock over from its front. Returns the requests to etcd for each hand-over. */
async function requestsOfHandOvers(waiters: number): Promise<number[]> {
  const proxy = await useProxy();
  const { url } = await useBridge({ endpoints: proxy.url });
  const dir = `/_locks/${freshName()}`;
  const entries: string[] = [];
  for (let i = 0; i <= waiters; i += 1) {
    // Repeated while etcd is too busy: a bridge then finds the entry of the same value.
    const { body } = await until(
      () => raw('POST', dir, { value: `waiter ${i}`, ttl: '600' }, url),
      ({ status }) => status === 201,
    );
    entries.push(body.node.key);
  }
  const connections = await Promise.all(
    entries.slice(0, -1).map(async (entry) => {
      const connection = await RawConnection.open(url);
      connection.send(request('GET', `/v2/keys${entry}?wait=true&waitIndex=${Number(entry.slice(-20)) + 1}`));
      return connection;
    }),
  );
  await Promise.all(connections.map((connection) => connection.begun(1)));
  const watches = () => [...proxy.open].filter(isWatch).length;
  await until(watches, (count) => count === waiters);
  const counts: number[] = [];
  for (const [i, connection] of connections.slice(0, HAND_OVERS).entries()) {
    const before = proxy.requests.length;
    await raw('DELETE', entries[i] ?? '', undefined, url);
    await connection.wholeAnswers(1);
    const { body } = await raw('GET', `${dir}?recursive=true`, undefined, url);
    expect(body.node.nodes).toHaveLength(waiters - i);
    counts.push(proxy.requests.length - before);
  }
  for (const connection of connections) connection.hangUp();
  // A poll whose client has hung up leaves no watch.
  await until(watches, (count) => count === 0);
  for (const entry of entries.slice(HAND_OVERS)) await raw('DELETE', entry, undefined, url);
  return counts;
}

const isWatch = ({ path }: ProxiedRequest): boolean => path.endsWith('/watch');

const median = (counts: readonly number[]): number | undefined =>
  counts.toSorted((a, b) => a - b)[Math.floor(counts.length / 2)];
