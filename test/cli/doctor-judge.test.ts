import { describe, expect, test } from 'vitest';
import { basisOf } from '../../src/cli/doctor/basis.ts';
import type { Clock, EndpointFacts, Facts } from '../../src/cli/doctor/facts.ts';
import { isWell, judge } from '../../src/cli/doctor/judge.ts';

const member = (number: number, fields: Partial<EndpointFacts> = {}): EndpointFacts => ({
  endpoint: url(number),
  version: { server: '3.4.23', cluster: '3.4.0' },
  v2: { on: true },
  id: `id${number}`,
  name: `m${number}`,
  clusterId: 'c1',
  members: [1, 2, 3].map((n) => ({ id: `id${n}`, name: `m${n}`, peerURLs: [], clientURLs: [url(n)] })),
  leader: 'id1',
  healthy: true,
  auth: false,
  ttls: [],
  read: { is: 'done' },
  write: { is: 'done' },
  quorumReadMs: 4,
  testKey: '/_etcd-v2-lock-doctor/00000000000000000007',
  testWrite: { is: 'done' },
  clock: clock(0),
  ...fields,
});
const url = (number: number): string => `http://10.0.0.${number}:2379`;
const clock = (ahead: number, doubt = 0.01): Clock => ({
  by: 'test key',
  earliest: ahead - doubt,
  latest: ahead + doubt,
});

const three = (...changes: Partial<EndpointFacts>[]): EndpointFacts[] =>
  [1, 2, 3].map((number) => member(number, changes[number - 1]));

const facts = (endpoints: readonly EndpointFacts[], fields: Partial<Facts> = {}): Facts => ({
  lockPrefix: '/_locks',
  user: undefined,
  ttl: undefined,
  given: endpoints.map(({ endpoint }) => endpoint),
  endpoints,
  ...fields,
});

const troubles = (of: Facts) => judge(of).filter(({ level }) => level !== 'ok');

const unreachable = { unreachable: { reason: 'other', message: 'gone' }, v2: undefined } as const;
const failed = { is: 'failed', message: 'timed out' } as const;
const refused = { is: 'refused', message: 'no' } as const;
const noQuorum = { read: failed, write: failed, healthy: false, leader: null, quorumReadMs: undefined };

test('three members that are well give nothing to do', () => {
  const findings = judge(facts(three()));
  expect(findings.filter(({ level }) => level !== 'ok')).toEqual([]);
  expect(isWell(findings)).toBe(true);
});

describe('trouble with one member is a warning while locks can be had by another, and a failure when it is alone:', () => {
  test.each<[string, Partial<EndpointFacts>, string, RegExp]>([
    ['it cannot be reached', unreachable, 'reachable', /cannot be reached: gone/],
    ['it is cut off', { read: failed, write: failed, healthy: false }, 'health', /no quorum.*timed out.*unhealthy/],
    ['it takes no writes', { write: failed }, 'access', /does not write: timed out/],
    ['it is too slow to tell', { v2: undefined }, 'v2', /did not say in time/],
  ])('%s', (_, change, about, text) => {
    const warned = troubles(facts(three({}, change)));
    expect(warned).toMatchObject([{ level: 'warn', about, endpoint: url(2), text: expect.stringMatching(text) }]);
    const alone = facts([member(2, { members: undefined, ...change })]);
    expect(troubles(alone)).toMatchObject([{ level: 'fail', about }]);
  });
});

test('a test key that could not be made is a warning, where all that locks need works', () => {
  const failing = { testKey: undefined, testWrite: failed };
  expect(troubles(facts(three({}, failing)))).toMatchObject([{ level: 'warn', about: 'test-key', endpoint: url(2) }]);
});

test('a member that calls itself unhealthy, but does all that locks need, is a warning', () => {
  const alone = facts([member(1, { members: undefined, healthy: false })]);
  expect(troubles(alone)).toMatchObject([{ level: 'warn', about: 'health', text: 'it calls itself unhealthy' }]);
});

describe('what makes locks unsafe or impossible is a failure, though other members are well:', () => {
  test.each<[string, Partial<EndpointFacts>, string, RegExp]>([
    ['v2 is off', { v2: { on: false, absent: true, message: 'none' } }, 'v2', /v2 API is off/],
    ['names are bare numbers', { testKey: '/_etcd-v2-lock-doctor/7' }, 'names', /lock-doctor\/7,.*python-etcd/],
    ['reading is refused', { read: refused }, 'access', /everybody may not read below \/_locks/],
    ['writing is refused', { write: refused, auth: true }, 'access', /no password may not write below/],
    ['something else is served', { v2: { on: false, absent: false, message: 'hi' } }, 'v2', /no v2 API: hi/],
    ['another cluster answers', { clusterId: 'c2', leader: undefined }, 'cluster-id', /10\.0\.0\.2:2379 of c2/],
    ['its clock is behind', { clock: clock(-4) }, 'clocks', /differ by 4\.00 s, but locks allow for 3\.00 s/],
  ])('%s', (_, change, about, text) => {
    const findings = judge(facts(three({}, change)));
    expect(findings.filter(({ level }) => level !== 'ok')).toMatchObject([
      { level: 'fail', about, text: expect.stringMatching(text), advice: expect.stringMatching(/./) },
    ]);
    expect(isWell(findings)).toBe(false);
  });
});

test('where no member finds a quorum all is a failure', () => {
  expect(troubles(facts(three(noQuorum, unreachable, unreachable)))).toMatchObject([
    { level: 'fail', about: 'health' },
    { level: 'fail', about: 'reachable' },
    { level: 'fail', about: 'reachable' },
    { level: 'fail', about: 'leader' },
  ]);
});

describe('leaders', () => {
  test('that differ are a warning: an election may be under way', () => {
    const text = 'the members disagree on the leader: m1, m2';
    expect(troubles(facts(three({}, { leader: 'id2' })))).toMatchObject([{ level: 'warn', about: 'leader', text }]);
  });

  test('that one member has lost are a warning', () => {
    const text = `there is no leader, says ${url(3)}`;
    expect(troubles(facts(three({}, {}, { leader: null })))).toMatchObject([{ level: 'warn', about: 'leader', text }]);
  });
});

describe('clocks', () => {
  test.each([
    ['well within the margin', 2.9, 0.01, 'ok'],
    ['surely beyond it', 3.1, 0.01, 'fail'],
    ['perhaps beyond it', 3.1, 0.2, 'warn'],
    ['perhaps beyond it, but likely not', 2.9, 0.2, 'ok'],
  ])('%s: %d s, give or take %d s', (_, ahead, doubt, level) => {
    expect(judge(facts(three({}, { clock: clock(ahead, doubt) })))).toContainEqual(
      expect.objectContaining({ level, about: 'clocks' }),
    );
  });

  test('of one member, asked at two addresses, are not compared', () => {
    const twice = [member(1), { ...member(1), endpoint: 'http://m1:2379', clock: clock(100) }];
    expect(judge(facts(twice)).some(({ about }) => about === 'clocks')).toBe(false);
  });
});

describe('the TTL to judge by', () => {
  test.each<[string, Partial<Facts>, number[], { ttl: number; margin: number }]>([
    ['is the one the user gives', { ttl: 60 }, [10], { ttl: 60, margin: 6 }],
    ['is else the shortest that is left', {}, [40, 20], { ttl: 20, margin: 2 }],
    ['allows for a quarter of a second, however short', {}, [1], { ttl: 1, margin: 0.25 }],
    ['is else the usual one', {}, [], { ttl: 30, margin: 3 }],
  ])('%s', (_, fields, ttls, expected) => {
    expect(basisOf(facts(three({ ttls }), fields))).toMatchObject(expected);
  });

  test('makes a quorum read slow that takes half of what a renewal gets', () => {
    const slow = three({ quorumReadMs: 260 });
    expect(troubles(facts(slow, { ttl: 3 }))).toMatchObject([
      { level: 'warn', about: 'health', text: expect.stringMatching(/takes 260 ms, and .* TTL of 3 s gets 500 ms/) },
    ]);
    expect(troubles(facts(slow, { ttl: 30 }))).toEqual([]);
  });
});

describe('members', () => {
  test('that are not among the endpoints are named with their addresses', () => {
    const [first, second] = three();
    expect(troubles(facts([first, second] as EndpointFacts[]))).toMatchObject([
      { level: 'warn', about: 'members', text: expect.stringContaining('m3'), advice: expect.stringContaining(url(3)) },
    ]);
  });

  test('that have never been started are told apart', () => {
    const members = [...(member(1).members ?? []), { id: 'id4', name: '', peerURLs: [], clientURLs: [] }];
    expect(troubles(facts(three({ members })))).toMatchObject([
      { about: 'members', text: 'member id4 has not been started' },
    ]);
  });

  test('that cannot be reached are known by their addresses', () => {
    expect(troubles(facts([member(1), member(2), { endpoint: url(3), ...unreachable }]))).toMatchObject([
      { about: 'reachable' },
    ]);
  });
});

describe('users', () => {
  test('are let in though auth is off, which is worth a warning', () => {
    expect(troubles(facts(three(), { user: 'app' }))).toMatchObject(
      [1, 2, 3].map(() => ({ level: 'warn', about: 'access', text: expect.stringContaining('so is everybody') })),
    );
  });

  test.each([
    [{ read: true, write: false }, 'whoever has no password may read there, too'],
    [{ read: true, write: true }, 'whoever has no password may read and write there, too'],
  ])('are not alone where guests may do %j', (guest, text) => {
    const found = troubles(facts(three({ auth: true, guest }), { user: 'app' }));
    expect(found).toContainEqual(expect.objectContaining({ level: 'warn', about: 'guest', text }));
  });
});
