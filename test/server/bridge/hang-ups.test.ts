// What a request has under way at etcd ends with the request, where that leaves nothing of its client behind.
import { expect, onTestFinished, test } from 'vitest';
import { gate } from '../../support/gate.ts';
import { base64, entriesBelow, gateway } from '../../support/gateway.ts';
import { freshName, raw, useProxy } from '../../support/locks.ts';
import type { ProxiedRequest } from '../../support/proxy.ts';
import { get, RawConnection, request } from '../../support/raw-connection.ts';
import { until } from '../../support/until.ts';
import { useBridge } from './use-bridge.ts';

/** A bridge behind a proxy, and an entry with a TTL that the end of the test removes. */
async function setUp(api: 'v3' | 'both') {
  const proxy = await useProxy();
  // Without an end of the request, a read would stay open for as long as this.
  const { url } = await useBridge({ endpoints: proxy.url, api, readTimeout: 600 });
  const dir = `/_locks/${freshName()}`;
  const { body } = await raw('POST', dir, { value: freshName(), ttl: '60' }, url);
  onTestFinished(() => void raw('DELETE', body.node.key, undefined, url).catch(() => {}));
  return { proxy, url, dir, key: body.node.key };
}

const renewal = (key: string): string =>
  request('PUT', `/v2/keys${key}`, { form: 'ttl=60&refresh=true&prevExist=true' });

test.each([
  ['v3', 'a listing', (dir: string) => get(`${dir}?recursive=true`)],
  ['v3', 'a read of an entry', (_: string, key: string) => get(key)],
  ['v3', 'a renewal', (_: string, key: string) => renewal(key)],
  ['both', 'a listing', (dir: string) => get(`${dir}?recursive=true`)],
  ['both', 'a listing of all locks', () => get('/_locks?recursive=true')],
  ['both', 'a read of an entry', (_: string, key: string) => get(key)],
  ['both', 'a renewal', (_: string, key: string) => renewal(key)],
] as const)('a bridge to %s ends %s at a silent etcd when its client hangs up', async (api, _, asked) => {
  const { proxy, url, dir, key } = await setUp(api);
  const goOn = proxy.intercept(() => ({ silent: true }));
  const clients = await Promise.all(Array.from({ length: 20 }, () => RawConnection.open(url)));
  for (const client of clients) client.send(asked(dir, key));
  await until(
    () => proxy.open.size,
    (open) => open >= 20,
  );
  for (const client of clients) client.hangUp();
  await until(
    () => proxy.open.size,
    (open) => open === 0,
  );
  goOn();
});

const isRemoval = ({ path, body }: ProxiedRequest): boolean =>
  path.endsWith('/kv/txn') && body.includes('request_delete_range');

test('a removal is carried out although its client has hung up', async () => {
  const { proxy, url, dir } = await setUp('v3');
  // The bridge must read an entry that it has not created.
  await gateway('/kv/put', { key: base64(`${dir}/other`), value: base64('other') });
  const { rank = 0n } = (await entriesBelow(`${dir}/`)).find(({ value }) => value === 'other') ?? {};
  const read = gate();
  const isRead = ({ path }: ProxiedRequest): boolean => path.endsWith('/kv/range');
  const reading = proxy.next(isRead, 'arrived');
  const forget = proxy.intercept((asked) => (isRead(asked) ? { hold: read.opened } : undefined));
  const removed = proxy.next(isRemoval, 'answered');
  const client = await RawConnection.open(url);
  client.send(request('DELETE', `/v2/keys${dir}/${String(rank).padStart(20, '0')}`));
  await reading;
  client.hangUp();
  await client.closed();
  read.open();
  forget();
  await removed;
  expect((await entriesBelow(`${dir}/`)).filter(({ value }) => value === 'other')).toEqual([]);
});

test('a renewal whose client has hung up moves no entry to another lease', async () => {
  const { proxy, url, dir } = await setUp('v3');
  // An entry of another client of etcd v3: its lease is not the bridge's, so a renewal would replace it.
  await gateway('/kv/put', { key: base64(`${dir}/other`), value: base64('other') });
  onTestFinished(async () => void (await gateway('/kv/deleterange', { key: base64(`${dir}/other`) })));
  const { rank = 0n } = (await entriesBelow(`${dir}/`)).find(({ value }) => value === 'other') ?? {};
  const read = gate();
  const isRead = ({ path }: ProxiedRequest): boolean => path.endsWith('/kv/range');
  const reading = proxy.next(isRead, 'arrived');
  const forget = proxy.intercept((asked) => (isRead(asked) ? { answerAfter: read.opened } : undefined));
  const client = await RawConnection.open(url);
  client.send(renewal(`${dir}/${String(rank).padStart(20, '0')}`));
  await reading;
  client.hangUp();
  await until(
    () => proxy.open.size,
    (open) => open === 0,
  );
  const sent = proxy.requests.length;
  read.open();
  forget();
  // The next request is answered after whatever the renewal would still do.
  await raw('GET', dir, undefined, url);
  expect(proxy.requests.slice(sent).map(({ path }) => path)).toEqual([expect.stringMatching(/range$/)]);
});
