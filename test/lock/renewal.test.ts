import { expect, test } from 'vitest';
import { EtcdConnectionFailed } from '../../src/index.ts';
import { append, freshUuid, type Place, renew } from '../../src/v2/locks/entry.ts';
import { freshName, raw, useClient, useProxy } from '../support/locks.ts';
import type { ProxiedRequest } from '../support/proxy.ts';

/** An entry whose index has changed since it was made, and a client behind a proxy. */
async function useChangedEntry() {
  const proxy = await useProxy();
  const client = useClient({ endpoints: proxy.url });
  const { place } = await append(client, `/_locks/${freshName()}`, freshUuid(), 60, {
    signal: new AbortController().signal,
    attemptTimeout: 5,
  });
  await client.version();
  await raw('PUT', place.key, { value: place.uuid, ttl: '60', prevValue: place.uuid });
  /** Methods of the requests for the entry that one renewal makes. */
  const renewal = async (from: Place): Promise<{ methods: string[]; outcome: unknown }> => {
    const start = proxy.requests.length;
    const outcome = await renew(client, from, 60, {}).catch((error: unknown) => error);
    const isOurs = ({ path }: ProxiedRequest): boolean => path.endsWith(place.key);
    return {
      methods: proxy.requests
        .slice(start)
        .filter(isOurs)
        .map(({ method }) => method),
      outcome,
    };
  };
  return { proxy, place, renewal };
}

test('a renewal that could not be written after the entry had changed starts from its present index the next time', async () => {
  const { proxy, place, renewal } = await useChangedEntry();
  let writes = 0;
  const restore = proxy.intercept(({ method }) => {
    if (method === 'PUT') writes += 1;
    return method === 'PUT' && writes > 1 ? { refuse: true } : undefined;
  });
  const first = await renewal(place);
  expect(first.outcome).toBeInstanceOf(EtcdConnectionFailed);
  expect(first.methods.slice(0, 3)).toEqual(['PUT', 'GET', 'PUT']);
  restore();
  const { methods, outcome } = await renewal(place);
  expect(outcome).toMatchObject({ key: place.key, uuid: place.uuid });
  expect(methods).toEqual(['PUT']);
});

test('a renewal that could not read a changed entry reads it first the next time', async () => {
  const { proxy, place, renewal } = await useChangedEntry();
  const restore = proxy.intercept(({ method, path }) =>
    method === 'GET' && path.endsWith(place.key) ? { refuse: true } : undefined,
  );
  const first = await renewal(place);
  expect(first.outcome).toBeInstanceOf(EtcdConnectionFailed);
  expect(first.methods[0]).toBe('PUT');
  restore();
  const { methods, outcome } = await renewal(place);
  expect(outcome).toMatchObject({ key: place.key, uuid: place.uuid });
  expect(methods).toEqual(['GET', 'PUT']);
});
