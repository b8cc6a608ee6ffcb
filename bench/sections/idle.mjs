import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtcdClient, LockManager } from 'etcd-v2-lock';
import { startProxy } from '../setting/proxy.mjs';
import { until } from '../setting/until.mjs';

/**
 * Counts requests by kind per TTL/3 of a holder and of a waiter.
 * @param ttl seconds
 * @param thirds how many times TTL/3 to count; listings have another period, so a small number says little about them
 */
export async function idle(etcd, { ttl, thirds }) {
  const proxies = [await startProxy(etcd.url), await startProxy(etcd.url)];
  const clients = proxies.map(({ url }) => new EtcdClient({ endpoints: [url] }));
  const [holding, waiting] = clients.map((client) => new LockManager(client, { ttl }));
  const name = `idle-${randomUUID()}`;
  try {
    const held = await holding.acquire(name);
    const pending = waiting.acquire(name);
    const [holder, waiter] = await Promise.all(proxies.map((proxy) => perThirdOfTtl(proxy, { ttl, thirds })));
    await held.release();
    await (await pending).release();
    return { ttl, thirds, holder, waiter };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  }
}

/** Counts between midpoints of two renewals each, because polls begin and end close to renewals. */
export async function perThirdOfTtl(proxy, { ttl, thirds }) {
  const kinds = {};
  const taken = async () => {
    for (const [kind, more] of Object.entries((await proxy.take()).kinds)) kinds[kind] = (kinds[kind] ?? 0) + more;
    return kinds.renewal ?? 0;
  };
  const between = async (count) => {
    await until(taken, (renewals) => renewals >= count, { timeout: 2 * count * ttl * 1000 });
    await sleep((ttl * 1000) / 6);
    await taken();
  };
  await between(1); // includes the initial request for the version
  for (const kind of Object.keys(kinds)) delete kinds[kind];
  const start = performance.now();
  await between(thirds);
  const passed = (performance.now() - start) / ((ttl / 3) * 1000);
  return { kinds, perThird: Object.fromEntries(Object.entries(kinds).map(([kind, count]) => [kind, count / passed])) };
}
