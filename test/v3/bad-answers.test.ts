import fc from 'fast-check';
import { expect, inject, onTestFinished, test } from 'vitest';
import { EtcdClient } from '../../src/client.ts';
import { EtcdException } from '../../src/errors.ts';
import { LockManager } from '../../src/manager/manager.ts';
import { V3Client } from '../../src/v3/client.ts';
import { useAlteredMember } from '../support/altered-member.ts';
import { base64, entriesBelow, gateway } from '../support/gateway.ts';
import { freshName, rejection } from '../support/locks.ts';
import { until } from '../support/until.ts';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const kindOf = (value: Json): string => (value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value);

/** The places of all values in a message. */
function placesIn(value: Json, at: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [[...at]];
  return [[...at], ...Object.entries(value).flatMap(([name, inner]) => placesIn(inner, [...at, name]))];
}

/** Returns the message with another value at a place. */
function replaced(value: Json, [name, ...rest]: readonly string[], by: Json): Json {
  if (name === undefined) return by;
  const copy = structuredClone(value) as { [name: string]: Json };
  copy[name] = replaced(copy[name] ?? null, rest, by);
  return copy;
}

/** A value that etcd never sends in place of any other. */
const WRONG: fc.Arbitrary<Json> = fc.constantFrom<Json>(
  null,
  true,
  2 ** 60,
  1.5,
  'not a value!',
  '',
  '99999999999999999999999',
  [],
  [null],
  [7],
  {},
  { a: 1 },
);

/** Fields that this package does not read, or of which it needs no more than that they are there. */
const UNREAD = /^(member_id|version|message|watch_id|created|error|etcdcluster)$/;

/** A member that alters one value of one answer: the `nth`, at a place chosen by `where`. */
function useBadMember() {
  let plan: { nth: number; where: number; wrong: Json } | undefined;
  let seen = 0;
  let altered: string | undefined;
  const alter = (asked: string, { body }: { body: string }) => {
    if (!plan || asked.endsWith('/watch') || asked.endsWith('/revoke')) return undefined;
    seen += 1;
    if (seen !== plan.nth) return undefined;
    const message = JSON.parse(body) as Json;
    const places = placesIn(message).filter((at) => !UNREAD.test(at.at(-1) ?? ''));
    const place = places[plan.where % places.length] ?? [];
    const present = place.reduce<Json>((value, name) => (value as { [name: string]: Json })[name] ?? null, message);
    if (kindOf(present) === kindOf(plan.wrong) && present !== '' && !/^\d+$/.test(String(present))) return undefined;
    altered = `${asked} ${place.join('.')}: ${JSON.stringify(plan.wrong)} instead of ${JSON.stringify(present)}`;
    return { body: JSON.stringify(replaced(message, place, plan.wrong)) };
  };
  return {
    url: useAlteredMember(alter),
    begin(next: typeof plan) {
      [plan, seen, altered] = [next, 0, undefined];
    },
    get altered() {
      return altered;
    },
  };
}

test('an answer with a value of a wrong type is an EtcdException, and never gives away a lock that is held', async () => {
  const member = useBadMember();
  const endpoints = await member.url;
  const name = freshName();
  await gateway('/kv/put', { key: base64(`/_locks/${name}/other`) });
  let count = 0;
  const counted = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.nat(200), WRONG, async (nth, where, wrong) => {
      member.begin({ nth, where, wrong });
      const client = new EtcdClient({ api: 'v3', endpoints });
      const acquiring = new LockManager(client, { ttl: 5 }).acquire(name, { timeout: 0.5 });
      const error: unknown = await acquiring.then(
        () => `held: ${member.altered}`,
        (reason) => reason,
      );
      await client.close({ timeout: 5 }).catch(() => {});
      if (member.altered === undefined) return;
      count += 1;
      const code = error instanceof EtcdException ? error.code : String(error);
      counted.set(code, (counted.get(code) ?? 0) + 1);
      expect(error, member.altered).toBeInstanceOf(EtcdException);
    }),
    { numRuns: 40 },
  );
  expect(count).toBeGreaterThan(10);
  expect(counted.get('ETCD_UNUSABLE_ANSWER')).toBeGreaterThan(3);
  await until(
    () => entriesBelow(`/_locks/${name}/`),
    ({ length }) => length === 1,
    { timeout: 20_000 },
  );
});

test('each request rejects with an EtcdException, or resolves to values of the right types', async () => {
  const member = useBadMember();
  const client = new V3Client({ endpoints: await member.url });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  const name = freshName();
  const held = await new LockManager(client, { ttl: 60 }).acquire(name);
  const path = `/_locks/${name}`;
  const [own] = (await client.requests.listings.read(path, {})).entries;
  if (!own?.lease) throw new Error('no entry');
  const { rank, value, lease, modified } = own;
  const { requests } = client;
  const calls: readonly (() => Promise<unknown>)[] = [
    () => requests.listings.read(path, {}),
    () => requests.listings.first(path, { among: 1, onlyEntries: false }),
    () => requests.entries.get(held.key, {}),
    () => requests.entries.neighbours(held.key, rank, {}),
    () => requests.leases.renew(lease, [held.key], {}),
    () => requests.leases.withTtls([own], {}),
    () => requests.entries.move(held.key, { rank, value, lease, modified }, {}),
    () => requests.entries.remove(held.key, { rank, value: 'another' }, {}),
    () => requests.entries.delete(`${held.key}0`, {}),
    () => requests.entries.append(held.key, { value, lease, whole: true }),
    () => requests.leases.grant('7', 5, {}),
  ];
  const wrong = fc.tuple(fc.nat(calls.length - 1), fc.integer({ min: 1, max: 2 }), fc.nat(200), WRONG);
  let rejected = 0;
  await fc.assert(
    fc.asyncProperty(wrong, async ([call, nth, where, by]) => {
      member.begin({ nth, where, wrong: by });
      const outcome = await calls[call]?.().catch((error: unknown) => error);
      if (!(outcome instanceof Error)) return;
      rejected += 1;
      expect(outcome, `${calls[call]}: ${member.altered}`).toBeInstanceOf(EtcdException);
    }),
    { numRuns: 100 },
  );
  expect(rejected).toBeGreaterThan(15);
});

test('when each lease is gone as soon as it was granted, acquire gives up after three', async () => {
  const client = new V3Client({ endpoints: inject('etcd') });
  onTestFinished(() => client.close({ timeout: 0 }).catch(() => {}));
  const { leases } = client.requests;
  const grant = leases.grant.bind(leases);
  let grants = 0;
  leases.grant = async (id, ttl, options) => {
    grants += 1;
    const granted = await grant(id, ttl, options);
    await gateway('/lease/revoke', { ID: id });
    return granted;
  };
  const error = await rejection(new LockManager(client).acquire(freshName(), { timeout: 20 }));
  expect(error).toBeInstanceOf(EtcdException);
  expect(error).toMatchObject({ name: 'EtcdException', errorCode: 5, httpStatus: 404 });
  expect(String(error)).toContain('3 new leases did not exist when they were used');
  expect(grants).toBe(3);
});
