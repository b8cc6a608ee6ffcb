import { randomUUID } from 'node:crypto';
import { EtcdClient, LockManager } from 'etcd-v2-lock';
import { startProxy } from '../setting/proxy.mjs';
import { perThirdOfTtl } from './idle.mjs';

/** Number of locks acquired at the same time. */
const AT_ONCE = 50;

/** Counts requests by kind per TTL/3 of one client that holds many locks on etcd's v3 API. */
export async function held(etcd, { ttl, thirds, count }) {
  const proxy = await startProxy(etcd.url);
  const client = new EtcdClient({ endpoints: [proxy.url], api: 'v3' });
  const locks = new LockManager(client, { ttl });
  const holds = [];
  try {
    while (holds.length < count) {
      const more = Math.min(AT_ONCE, count - holds.length);
      holds.push(...(await Promise.all(Array.from({ length: more }, () => locks.acquire(`held-${randomUUID()}`)))));
    }
    const { kinds, perThird } = await perThirdOfTtl(proxy, { ttl, thirds });
    const lost = holds.filter(({ signal }) => signal.aborted).length;
    return { ttl, thirds, count, kinds, perThird, lost };
  } finally {
    for (const hold of holds) await hold.release();
    await client.close();
    await proxy.stop();
  }
}
