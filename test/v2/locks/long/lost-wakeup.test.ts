import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Lock } from '../../../../src/index.ts';
import { EmbeddedEtcd } from '../../../../src/server/index.ts';
import { startEtcd } from '../../../support/etcd.ts';
import { gate } from '../../../support/gate.ts';
import { freshName, useClient, useProxy } from '../../../support/locks.ts';
import type { ProxiedRequest } from '../../../support/proxy.ts';

const isWait = ({ query }: ProxiedRequest): boolean => query.get('wait') === 'true';

/** Causes `count` events that do not concern the lock. */
async function foreignEvents(endpoints: string, count: number): Promise<void> {
  const client = useClient({ endpoints });
  const writers = Array.from({ length: 20 }, async (_, writer) => {
    for (let i = writer; i < count; i += 20) await client.set('/foreign-events', String(i));
  });
  await Promise.all(writers);
}

// Servers of its own: waiters of python-etcd on a shared one would not survive so many events.
describe.each<[string, () => Promise<{ readonly url: string; stop(): Promise<unknown> }>]>([
  ['etcd', () => startEtcd()],
  ['an embedded server', () => EmbeddedEtcd.start()],
])('the release of the entry ahead, on %s,', (_, start) => {
  let server: Awaited<ReturnType<typeof start>>;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.stop());

  test.each([
    { events: 0, what: 'no other event' },
    { events: 500, what: '500 other events' },
    { events: 3000, what: '3000 other events, more than etcd’s history keeps' },
  ])('is noticed if it came between the listing and the watch, together with $what', async ({ events }) => {
    const proxy = await useProxy(server.url);
    const name = freshName();
    const owner = new Lock(useClient({ endpoints: server.url }), name);
    const waiter = new Lock(useClient({ endpoints: proxy.url }), name);
    await owner.acquire();
    const { opened, open } = gate();
    let held = 0;
    proxy.intercept((request) => {
      if (!isWait(request)) return undefined;
      held += 1;
      return { hold: opened };
    });
    const watching = proxy.next(isWait, 'arrived');
    const acquired = waiter.acquire({ lockTtl: 600 });
    await watching;
    await owner.release();
    await foreignEvents(server.url, events);
    open();
    expect(await acquired).toBe(true);
    expect(held).toBe(1);
    await waiter.release();
  });

  test('is noticed after the long poll was cut off, even if etcd’s history no longer has the event', async () => {
    const proxy = await useProxy(server.url);
    const name = freshName();
    const owner = new Lock(useClient({ endpoints: server.url }), name);
    const waiter = new Lock(useClient({ endpoints: proxy.url }), name);
    await owner.acquire();
    const polling = proxy.next(isWait, 'headers');
    const acquired = waiter.acquire({ lockTtl: 600 });
    await polling;
    const stop = proxy.intercept(() => ({ refuse: true }));
    await owner.release();
    await foreignEvents(server.url, 1500);
    stop();
    expect(await acquired).toBe(true);
  });
});
