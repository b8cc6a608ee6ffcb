import { expect, onTestFinished, test } from 'vitest';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { gate } from '../support/gate.ts';
import { base64, entriesBelow, gateway } from '../support/gateway.ts';
import { freshName, useProxy } from '../support/locks.ts';
import { useStillClock } from '../support/still-clock.ts';
import { isWatch } from '../support/watched-keys.ts';

const put = (key: string, value = 'other'): Promise<unknown> =>
  gateway('/kv/put', { key: base64(key), value: base64(value) });

test.each([
  ['an exclusive waiter', undefined, 1],
  ['a waiter with a limit', 2, 2],
])(
  'a deletion between the standing and the watch of %s is reported by the watch, on a clock that stands still',
  async (_, limit, ahead) => {
    const [proxy, name] = [await useProxy(), freshName()];
    const client = new V3Client({ endpoints: proxy.url });
    onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
    // Without it, a read after some seconds of silence would find out, too.
    useStillClock();
    const keys = Array.from({ length: ahead }, (_, i) => `/_locks/${name}/${i}`);
    for (const key of keys) await put(key, limit === undefined ? key : `limit:${limit}:${key}`);
    const deleted = gate();
    proxy.intercept((request) => (isWatch(request) ? { hold: deleted.opened } : undefined));
    const arrived = proxy.next(isWatch, 'arrived');
    const waiting = new LockManager(client, { ttl: 30 }).acquire(name, { limit });
    const { body } = await arrived;
    const own = (await entriesBelow(`/_locks/${name}/`)).at(-1);
    expect(JSON.parse(body)).toMatchObject({ create_request: { start_revision: String((own?.rank ?? 0n) + 1n) } });
    const [nearest = ''] = keys.slice(-1);
    await gateway('/kv/deleterange', { key: base64(nearest) });
    // Other clients write before the watch begins.
    await put(`/other/${name}`);
    const before = proxy.requests.length;
    deleted.open();
    const held = await waiting;
    expect(held.fencingToken).toBeGreaterThan(own?.rank ?? 0n);
    // One read of the queue, after the watch.
    expect(proxy.requests.slice(before).map(({ path }) => path)).toEqual([limit ? '/v3/kv/range' : '/v3/kv/txn']);
    expect(proxy.requests.filter(isWatch)).toHaveLength(1);
    for (const key of [...keys, `/other/${name}`]) await gateway('/kv/deleterange', { key: base64(key) });
    await held.release();
  },
  20_000,
);
