import { describe, expect, test } from 'vitest';
import { basisOf } from '../../../src/cli/doctor/basis.ts';
import type { EndpointFacts, Facts } from '../../../src/cli/doctor/facts.ts';
import { hasNoFailure, judge } from '../../../src/cli/doctor/judge.ts';

const url = (number: number): string => `http://10.0.0.${number}:2379`;

const member = (number: number, fields: Partial<EndpointFacts> = {}): EndpointFacts => ({
  endpoint: url(number),
  version: { server: '3.5.21', cluster: '3.5.0' },
  v2: { on: false, absent: true, message: 'none' },
  v3: { on: true },
  id: `id${number}`,
  name: `m${number}`,
  clusterId: 'c1',
  members: [1, 2, 3].map((n) => ({ id: `id${n}`, name: `m${n}`, peerURLs: [], clientURLs: [url(n)] })),
  leader: 'id1',
  healthy: true,
  auth: false,
  ttls: [],
  locks: { v3: [] },
  withoutLease: [],
  read: { is: 'done' },
  write: { is: 'done' },
  quorumReadMs: 4,
  ...fields,
});

const three = (...changes: Partial<EndpointFacts>[]): EndpointFacts[] =>
  [1, 2, 3].map((number) => member(number, changes[number - 1]));

const facts = (endpoints: readonly EndpointFacts[], fields: Partial<Facts> = {}): Facts => ({
  api: 'v3',
  lockPrefix: '/_locks',
  user: undefined,
  ttl: undefined,
  given: endpoints.map(({ endpoint }) => endpoint),
  endpoints,
  ...fields,
});

const troubles = (of: Facts) => judge(of).filter(({ level }) => level !== 'ok');
const about = (of: Facts, topic: string) => judge(of).filter((found) => found.about === topic);
const matching = (text: RegExp) => expect.stringMatching(text);

const noGateway = { on: false, absent: true, message: '404' } as const;
const failed = { is: 'failed', message: 'no answer in 5 s' } as const;
const learner = { is: 'failed', message: 'answered: etcdserver: rpc not supported for learner' } as const;
const refused = { is: 'refused', message: 'no' } as const;

test('three healthy members without v2 give no warning and no failure', () => {
  const findings = judge(facts(three()));
  expect(findings.filter(({ level }) => level !== 'ok')).toEqual([]);
  expect(hasNoFailure(findings)).toBe(true);
  expect(findings.map(({ about }) => about)).not.toContain('clocks');
});

describe('a problem of one member is a warning if locks work on another member, and a failure otherwise:', () => {
  test.each<[string, Partial<EndpointFacts>, string, RegExp, RegExp]>([
    ['it has no gateway', { v3: noGateway }, 'v3', /serves no v3 gateway/, /--enable-grpc-gateway.*client-http-urls/],
    ['it is no etcd', { v3: { ...noGateway, absent: false, message: 'hi' } }, 'v3', /no v3 gateway: hi/, /no proxy/],
    ['its gateway is silent', { v3: undefined }, 'v3', /gateway did not respond in time/, /the log/],
    ['it knows no leader', { read: failed, leader: null }, 'health', /^no quorum: a linearizable read/, /half/],
    ['it is a learner', { read: learner, write: learner }, 'health', /^the member is a learner/, /member promote/],
    ['it rejects reads', { read: failed, write: failed }, 'health', /^a linearizable read failed: no answer/, /^check/],
    ['it rejects writes', { write: failed }, 'access', /writes fail: no answer/, /the disk/],
    ['it is full', { write: { is: 'failed', message: 'database space exceeded' } }, 'access', /space/, /defragment/],
  ])('%s', (_, change, topic, text, advice) => {
    const level = 'warn';
    expect(troubles(facts(three({}, change)))).toContainEqual(
      expect.objectContaining({
        level,
        about: topic,
        endpoint: url(2),
        text: matching(text),
        advice: matching(advice),
      }),
    );
    const alone = facts([member(2, { members: undefined, ...change })]);
    expect(troubles(alone)[0]).toMatchObject({ level: 'fail', about: topic });
  });
});

describe('a problem that makes locks unsafe or impossible is a failure, even if other members are healthy:', () => {
  const tooOld = { on: false, absent: false, message: 'etcd "3.2.32" is too old' } as const;
  test.each<[string, Partial<EndpointFacts>, string, RegExp]>([
    ['etcd is too old', { version: { server: '3.2.32', cluster: '3.2.0' }, v3: tooOld }, 'v3', /too old/],
    ['reading is refused', { read: refused, auth: true }, 'access', /unauthenticated clients cannot read below/],
    ['writing is refused', { write: refused, auth: true }, 'access', /unauthenticated clients cannot write below/],
    ['it belongs to another cluster', { clusterId: 'c2', leader: undefined }, 'cluster-id', /10\.0\.0\.2:2379 in c2/],
  ])('%s', (_, change, topic, text) => {
    expect(troubles(facts(three({}, change)))).toMatchObject([
      { level: 'fail', about: topic, text: matching(text), advice: matching(/./) },
    ]);
  });
});

describe('credentials', () => {
  test('that grant too little are a failure, with advice about the prefix', () => {
    const denied = { read: refused, write: refused, auth: true, quorumReadMs: undefined };
    expect(troubles(facts([member(1, { members: undefined, ...denied })], { user: 'app' }))).toMatchObject([
      {
        level: 'fail',
        text: matching(/user "app" cannot read or write below \/_locks/),
        advice: matching(/\/_locks\/$/),
      },
    ]);
  });

  test('are not checked while auth is off, which is a warning', () => {
    expect(troubles(facts([member(1, { members: undefined })], { user: 'app' }))).toMatchObject([
      { level: 'warn', about: 'access', text: matching(/user "app" is not checked, and everyone has access/) },
    ]);
  });

  test('are checked for the whole store if there is no lock prefix', () => {
    const denied = { read: refused, write: refused, auth: true };
    const alone = facts([member(1, { members: undefined, ...denied })], { user: 'app', lockPrefix: '' });
    expect(troubles(alone)).toMatchObject([
      { text: matching(/read or write in the whole store/), advice: matching(/use --lock-prefix/) },
    ]);
  });
});

describe('a version', () => {
  test.each(['3.3.27', '3.4.23', '3.4.30', '3.5.0', '3.5.12'])(
    '%s may revoke valid leases for some seconds: a warning',
    (server) => {
      const alone = facts([member(1, { members: undefined, version: { server, cluster: undefined } })]);
      expect(troubles(alone)).toMatchObject([
        {
          level: 'warn',
          about: 'version',
          text: matching(/revoke valid leases when it continues, and for some seconds .* Later versions .* at once$/),
          advice: matching(/3\.4\.31 or later 3\.4, 3\.5\.13/),
        },
      ]);
    },
  );

  test.each(['3.4.31', '3.5.13', '3.6.0', '4.0.0', '3.6.0-rc.1'])('%s is not warned of', (server) => {
    expect(troubles(facts(three({ version: { server, cluster: undefined } })))).toEqual([]);
  });

  test('is not assessed for locks on v2', () => {
    const on = { v2: { on: true }, version: { server: '3.4.23', cluster: '3.4.0' } } as const;
    expect(troubles(facts(three(on, on, on), { api: 'v2' }))).toEqual([]);
  });
});

describe('the other API is reported, but never a problem:', () => {
  const [on, off] = [{ on: true } as const, noGateway];
  test.each<[string, Partial<EndpointFacts>, 'v2' | 'v3', 'v2' | 'v3', string]>([
    ['v2 besides v3', { v2: on, v3: on }, 'v3', 'v2', 'the v2 API is enabled, too'],
    ['no v2 besides v3', { v2: off, v3: on }, 'v3', 'v2', 'no v2 API'],
    ['v2 instead of v3', { v2: on, v3: off }, 'v3', 'v2', 'the v2 API is enabled; use it with --api v2'],
    ['v3 besides v2', { v2: on, v3: on }, 'v2', 'v3', 'the v3 gateway is enabled, too'],
    ['no v3 besides v2', { v2: on, v3: off }, 'v2', 'v3', 'no v3 gateway'],
  ])('%s', (_, change, api, topic, text) => {
    expect(about(facts([member(1, change)], { api }), topic)).toMatchObject([{ level: 'ok', text, endpoint: url(1) }]);
  });
});

describe('the stores', () => {
  const v2 = { on: true } as const;

  test('are reported with the names of their locks, if these are few', () => {
    const locks = { v2: ['a'], v3: ['b', 'c', 'd', 'e', 'f', 'g', 'h'] };
    const text = 'locks with entries: 1 ("a") in the v2 store; 7 ("b", "c", "d", "e", "f" and 2 more) in the v3 store';
    for (const api of ['v2', 'v3'] as const)
      expect(about(facts(three({ v2, locks }), { api }), 'stores')).toEqual([{ level: 'ok', about: 'stores', text }]);
  });

  test('are reported as the leader has them', () => {
    const stale = { v2, locks: { v2: ['old'] } };
    const [finding] = about(facts(three({ v2, locks: { v2: ['new'] }, leader: 'id1' }, stale, stale)), 'stores');
    expect(finding?.text).toContain('1 ("new") in the v2 store');
  });

  test('that exist, but could not be read, are unknown', () => {
    const [finding] = about(facts([member(1, { v2, locks: { v3: [] } })]), 'stores');
    expect(finding?.text).toBe('locks with entries: unknown in the v2 store; none in the v3 store');
  });

  test.each(['v2', 'v3'] as const)('that have locks of the same name are a warning with --api %s', (api) => {
    const both = three({ v2, locks: { v2: ['a', 'b'], v3: ['b', 'c'] } }, { v2 }, { v2 });
    expect(troubles(facts(both, { api }))).toMatchObject([
      {
        level: 'warn',
        about: 'stores',
        text: matching(/same lock names: "b"\. A v2 client and a v3 client/),
        advice: matching(/same API/),
      },
    ]);
  });
});

test('keys without a lease are named in a warning, in v3 mode only', () => {
  const withoutLease = ['/_locks/a/config', '/_locks/b\n/x'];
  const endpoints = three({ withoutLease, v2: { on: true } }, { v2: { on: true } }, { v2: { on: true } });
  expect(troubles(facts(endpoints))).toMatchObject([
    {
      level: 'warn',
      about: 'leases',
      text: matching(/"\/_locks\/a\/config", "\/_locks\/b\\n\/x"/),
      advice: matching(/etcdctl del/),
    },
  ]);
  expect(troubles(facts(endpoints, { api: 'v2' }))).toEqual([]);
});

describe('members', () => {
  test('that advertise a URL without a gateway are a warning', () => {
    const grpc = 'http://10.0.0.2:2381';
    const members = member(1).members?.map((one) => (one.id === 'id2' ? { ...one, clientURLs: [grpc] } : one));
    const endpoints = three({ members }, { members }, { members });
    expect(troubles(facts(endpoints))).toEqual([]);
    expect(troubles(facts(endpoints, { withoutGateway: [grpc] }))).toMatchObject([
      { level: 'warn', about: 'members', text: `member m2 advertises URLs without a v3 gateway: ${grpc}` },
    ]);
  });

  test('that are not among the endpoints: the advice leaves out URLs without a gateway', () => {
    const [first, second] = three() as [EndpointFacts, EndpointFacts];
    expect(troubles(facts([first, second], { withoutGateway: [url(3)] }))).toMatchObject([
      {
        about: 'members',
        text: matching(/m3 .* not in the list/),
        advice: matching(/^add its URL that serves the v3/),
      },
      { about: 'members', text: matching(/m3 advertises/) },
    ]);
  });
});

describe('the TTL for the assessment', () => {
  test('is the shortest TTL of a lease', () => {
    expect(basisOf(facts(three({ ttls: [20, 10] })))).toMatchObject({
      ttl: 10,
      from: matching(/^the shortest TTL of a lease below/),
    });
  });

  test('makes a read slow if a renewal that takes as long asks another member', () => {
    const slow = facts(three({ quorumReadMs: 260 }), { ttl: 3 });
    expect(troubles(slow)).toMatchObject([
      { about: 'health', text: matching(/slow: a linearizable read takes 260 ms/) },
    ]);
    const withLongTtl = facts(three({ quorumReadMs: 1100 }), { ttl: 60 });
    expect(troubles(withLongTtl)).toMatchObject([
      {
        about: 'health',
        text: matching(/takes 1100 ms; a renewal asks another member after 1000 ms for a TTL of 60 s/),
      },
    ]);
  });
});
