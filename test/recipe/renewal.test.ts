import { expect, test } from 'vitest';
import { EtcdConnectionFailed } from '../../src/index.ts';
import { freshUuid } from '../../src/recipe/entries/uuid.ts';
import { freshName, raw, useClient, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';

/** Creates an entry and changes its index, and connects a client behind a proxy that renews the entry. */
async function useChangedEntry() {
  const proxy = await useProxy();
  const client = useClient({ endpoints: proxy.url });
  const ticket = client.store.queue(freshName()).ticket(freshUuid());
  const entry = await ticket.enter(60, { failed: 0, keepAlive: true });
  if (!entry) return expect.unreachable();
  await client.version();
  await raw('PUT', entry.key, { value: entry.value, ttl: '60', prevValue: entry.value });
  /** Renews once. Returns the outcome, and the methods of the requests for the entry. */
  const renewal = async (): Promise<{ methods: string[]; outcome: unknown }> => {
    const start = proxy.requests.length;
    const outcome = await ticket.renew({ timeout: 10 }).catch((error: unknown) => error);
    const isOurs = ({ path }: ProxiedRequest): boolean => path.endsWith(entry.key);
    return {
      methods: proxy.requests
        .slice(start)
        .filter(isOurs)
        .map(({ method }) => method),
      outcome,
    };
  };
  return { proxy, entry, renewal };
}

test('if a renewal reads a changed entry but fails to write, the next one writes with the new index', async () => {
  const { proxy, entry, renewal } = await useChangedEntry();
  let writes = 0;
  const restore = proxy.intercept(({ method }) => {
    if (method === 'PUT') writes += 1;
    return method === 'PUT' && writes > 1 ? { refuse: true } : undefined;
  });
  const first = await renewal();
  expect(first.outcome).toBeInstanceOf(EtcdConnectionFailed);
  expect(first.methods.slice(0, 3)).toEqual(['PUT', 'GET', 'PUT']);
  restore();
  const { methods, outcome } = await renewal();
  expect(outcome).toMatchObject({ key: entry.key, value: entry.value });
  expect(methods).toEqual(['PUT']);
});

test('if a renewal fails to read a changed entry, the next one reads the entry before it writes', async () => {
  const { proxy, entry, renewal } = await useChangedEntry();
  const restore = proxy.intercept(({ method, path }) =>
    method === 'GET' && path.endsWith(entry.key) ? { refuse: true } : undefined,
  );
  const first = await renewal();
  expect(first.outcome).toBeInstanceOf(EtcdConnectionFailed);
  expect(first.methods[0]).toBe('PUT');
  restore();
  const { methods, outcome } = await renewal();
  expect(outcome).toMatchObject({ key: entry.key, value: entry.value });
  expect(methods).toEqual(['GET', 'PUT']);
});
