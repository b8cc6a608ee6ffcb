import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient, LockManager } from '../../src/index.ts';
import { base64, entriesBelow, gateway } from '../../test/support/gateway.ts';
import { freshName } from '../../test/support/locks.ts';
import { until } from '../../test/support/until.ts';

// jetcd and other clients use this service of the server, which runs Go's Mutex of the server's version.
test.each([
  ['3.4', 'takes the lock although another client holds it', 200],
  ['3.5', 'is refused', 500],
  ['3.6', 'is refused', 500],
] as const)(
  "on etcd %s, a waiter of the server's lock service whose lease has expired %s",
  async (version, _, status) => {
    const etcd = inject('servers')[version];
    const name = freshName();
    // Requests of one client would wait for each other without entries.
    const useLocks = (): LockManager => {
      const client = new EtcdClient({ endpoints: etcd, api: 'v3' });
      onTestFinished(() => client.close());
      return new LockManager(client);
    };
    const untilQueued = (count: number) =>
      until(
        () => entriesBelow(`/_locks/${name}/`, etcd),
        ({ length }) => length === count,
      );

    const first = await useLocks().acquire(name);
    const { ID } = await gateway('/lease/grant', { TTL: '2' }, etcd);
    const body = JSON.stringify({ name: base64(`/_locks/${name}`), lease: ID });
    const waiting = fetch(`${etcd}/v3/lock/lock`, { method: 'POST', body });
    await untilQueued(2);
    const next = useLocks().acquire(name);
    await untilQueued(3);
    // The lease has expired.
    await untilQueued(2);
    await first.release();
    const held = await next;
    const answer = await waiting;
    expect(answer.status).toBe(status);
    const text = await answer.text();
    if (status === 500) expect(text).toContain('mutex: session is expired');
    held.assertHeld();
    expect(await entriesBelow(`/_locks/${name}/`, etcd)).toMatchObject([{ key: held.key }]);
    await held.release();
  },
);
