import { describe, expect, test } from 'vitest';
import { basisOf } from '../../../src/cli/doctor/basis.ts';
import type { ClockOffset, EndpointFacts, Facts } from '../../../src/cli/doctor/facts.ts';
import { hasNoFailure, judge } from '../../../src/cli/doctor/judge.ts';

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
const clock = (ahead: number, uncertainty = 0.01): ClockOffset => ({
  by: 'test key',
  earliest: ahead - uncertainty,
  latest: ahead + uncertainty,
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

test('three healthy members give no warning and no failure', () => {
  const findings = judge(facts(three()));
  expect(findings.filter(({ level }) => level !== 'ok')).toEqual([]);
  expect(hasNoFailure(findings)).toBe(true);
});

describe('a problem of one member is a warning if locks work on another member, and a failure otherwise:', () => {
  test.each<[string, Partial<EndpointFacts>, string, RegExp]>([
    ['it cannot be reached', unreachable, 'reachable', /cannot connect: gone/],
    ['it has no quorum', { read: failed, write: failed, healthy: false }, 'health', /no quorum.*timed out.*unhealthy/],
    ['it rejects writes', { write: failed }, 'access', /writes fail: timed out/],
    ['it is too slow', { v2: undefined }, 'v2', /did not respond in time/],
  ])('%s', (_, change, about, text) => {
    const warned = troubles(facts(three({}, change)));
    expect(warned).toMatchObject([{ level: 'warn', about, endpoint: url(2), text: expect.stringMatching(text) }]);
    const alone = facts([member(2, { members: undefined, ...change })]);
    expect(troubles(alone)).toMatchObject([{ level: 'fail', about }]);
  });
});

test('a test key that cannot be created is a warning if locks work', () => {
  const failing = { testKey: undefined, testWrite: failed };
  expect(troubles(facts(three({}, failing)))).toMatchObject([{ level: 'warn', about: 'test-key', endpoint: url(2) }]);
});

test('a member that reports itself unhealthy is a warning if locks work', () => {
  const alone = facts([member(1, { members: undefined, healthy: false })]);
  expect(troubles(alone)).toMatchObject([
    { level: 'warn', about: 'health', text: 'the member reports that it is unhealthy' },
  ]);
});

describe('a problem that makes locks unsafe or impossible is a failure, even if other members are healthy:', () => {
  test.each<[string, Partial<EndpointFacts>, string, RegExp]>([
    ['v2 is disabled', { v2: { on: false, absent: true, message: 'none' } }, 'v2', /v2 API is disabled/],
    [
      'key names have no leading zeros',
      { testKey: '/_etcd-v2-lock-doctor/7' },
      'names',
      /lock-doctor\/7 .*python-etcd/,
    ],
    ['reading is refused', { read: refused }, 'access', /unauthenticated clients cannot read below \/_locks/],
    ['writing is refused', { write: refused, auth: true }, 'access', /unauthenticated clients cannot write below/],
    ['another server responds', { v2: { on: false, absent: false, message: 'hi' } }, 'v2', /no v2 API: hi/],
    ['it belongs to another cluster', { clusterId: 'c2', leader: undefined }, 'cluster-id', /10\.0\.0\.2:2379 in c2/],
    ['its clock is behind', { clock: clock(-4) }, 'clocks', /differ by 4\.00 s; the limit is 3\.00 s/],
  ])('%s', (_, change, about, text) => {
    const findings = judge(facts(three({}, change)));
    expect(findings.filter(({ level }) => level !== 'ok')).toMatchObject([
      { level: 'fail', about, text: expect.stringMatching(text), advice: expect.stringMatching(/./) },
    ]);
    expect(hasNoFailure(findings)).toBe(false);
  });
});

test('all problems are failures if no member has a quorum', () => {
  expect(troubles(facts(three(noQuorum, unreachable, unreachable)))).toMatchObject([
    { level: 'fail', about: 'health' },
    { level: 'fail', about: 'reachable' },
    { level: 'fail', about: 'reachable' },
    { level: 'fail', about: 'leader' },
  ]);
});

describe('leaders', () => {
  test('that differ are a warning, because an election may be in progress', () => {
    const text = 'the members disagree on the leader: m1, m2';
    expect(troubles(facts(three({}, { leader: 'id2' })))).toMatchObject([{ level: 'warn', about: 'leader', text }]);
  });

  test('that one member does not know are a warning', () => {
    const text = `no leader, according to ${url(3)}`;
    expect(troubles(facts(three({}, {}, { leader: null })))).toMatchObject([{ level: 'warn', about: 'leader', text }]);
  });
});

describe('clocks', () => {
  test.each([
    ['well within the margin', 2.9, 0.01, 'ok'],
    ['certainly above the margin', 3.1, 0.01, 'fail'],
    ['possibly above the margin', 3.1, 0.2, 'warn'],
    ['possibly above the margin, but probably not', 2.9, 0.2, 'ok'],
  ])('%s: %d s, plus or minus %d s', (_, ahead, uncertainty, level) => {
    expect(judge(facts(three({}, { clock: clock(ahead, uncertainty) })))).toContainEqual(
      expect.objectContaining({ level, about: 'clocks' }),
    );
  });

  test('of one member at two addresses are not compared', () => {
    const twice = [member(1), { ...member(1), endpoint: 'http://m1:2379', clock: clock(100) }];
    expect(judge(facts(twice)).some(({ about }) => about === 'clocks')).toBe(false);
  });
});

describe('the TTL for the assessment', () => {
  test.each<[string, Partial<Facts>, number[], { ttl: number; margin: number }]>([
    ['is the value of --ttl', { ttl: 60 }, [10], { ttl: 60, margin: 6 }],
    ['is the shortest remaining TTL without --ttl', {}, [40, 20], { ttl: 20, margin: 2 }],
    ['gives a margin of at least a quarter of a second', {}, [1], { ttl: 1, margin: 0.25 }],
    ['is the default TTL without entries', {}, [], { ttl: 30, margin: 3 }],
  ])('%s', (_, fields, ttls, expected) => {
    expect(basisOf(facts(three({ ttls }), fields))).toMatchObject(expected);
  });

  test('makes a quorum read slow if a renewal that takes as long asks another member', () => {
    const slow = three({ quorumReadMs: 260 });
    expect(troubles(facts(slow, { ttl: 3 }))).toMatchObject([
      { level: 'warn', about: 'health', text: expect.stringMatching(/takes 260 ms; .* after 250 ms for a TTL of 3 s/) },
    ]);
    expect(troubles(facts(slow, { ttl: 30 }))).toEqual([]);
  });
});

describe('members', () => {
  test('that are not in the list of endpoints are reported with their addresses', () => {
    const [first, second] = three();
    expect(troubles(facts([first, second] as EndpointFacts[]))).toMatchObject([
      { level: 'warn', about: 'members', text: expect.stringContaining('m3'), advice: expect.stringContaining(url(3)) },
    ]);
  });

  test('that have never been started are reported as such', () => {
    const members = [...(member(1).members ?? []), { id: 'id4', name: '', peerURLs: [], clientURLs: [] }];
    expect(troubles(facts(three({ members })))).toMatchObject([
      { about: 'members', text: 'member id4 has never been started' },
    ]);
  });

  test('that cannot be reached are identified by their addresses', () => {
    expect(troubles(facts([member(1), member(2), { endpoint: url(3), ...unreachable }]))).toMatchObject([
      { about: 'reachable' },
    ]);
  });
});

describe('users', () => {
  test('are not checked while auth is off, which is a warning', () => {
    expect(troubles(facts(three(), { user: 'app' }))).toMatchObject(
      [1, 2, 3].map(() => ({ level: 'warn', about: 'access', text: expect.stringContaining('everyone has access') })),
    );
  });

  test.each([
    [{ read: true, write: false }, 'unauthenticated clients can also read below /_locks'],
    [{ read: true, write: true }, 'unauthenticated clients can also read and write below /_locks'],
  ])('are not the only ones with access if guests can do %j', (guest, text) => {
    const found = troubles(facts(three({ auth: true, guest }), { user: 'app' }));
    expect(found).toContainEqual(expect.objectContaining({ level: 'warn', about: 'guest', text }));
  });
});
