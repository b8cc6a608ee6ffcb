import type { StoreApi } from '../../../client.ts';
import { hasFullWidth } from '../../../v2/paths.ts';
import type { EndpointFacts, Finding, Unreachable } from '../facts.ts';
import { TEST_DIR } from '../v2/test-key.ts';
import { access, guest } from './access.ts';
import { judgeOtherApi, judgeOwnApi, judgeVersion } from './apis.ts';
import type { Context } from './context.ts';
import { CHECK_HEALTH, findingFor, type MakeFinding } from './finding.ts';

/** Whether locks work on this member. */
export const isUsable = (member: EndpointFacts, api: StoreApi): boolean =>
  member[api]?.on === true && member.read?.is === 'done' && member.write?.is === 'done';

/** Returns the findings for one member, most fundamental first. */
export function judgeEndpoint(member: EndpointFacts, context: Context): Finding[] {
  const finding = findingFor(member.endpoint);
  const { api, anyUsable } = context;
  const level = anyUsable ? 'warn' : 'fail';
  if (member.unreachable) return [finding(level, 'reachable', ...describeUnreachable(member.unreachable))];
  const details = () => [
    ...judgeVersion(member, api, finding),
    ...health(member, context, finding),
    ...access(member, context, finding),
    ...guest(member, context, finding),
    ...testKey(member, finding),
  ];
  return [
    finding('ok', 'reachable', describeMember(member)),
    judgeOwnApi(member, api, level, finding),
    ...judgeOtherApi(member, api, finding),
    ...(member[api]?.on ? details() : []),
  ];
}

function describeUnreachable({ reason, message }: Unreachable): [string, string] {
  switch (reason) {
    case 'refused':
      return [`nothing listens at this address: ${message}`, 'start etcd there, or correct --endpoints'];
    case 'silent':
      return [
        `the server does not respond: ${message}`,
        'check whether it is stopped, overloaded, or behind a firewall',
      ];
    case 'name':
      return [`the host name cannot be resolved: ${message}`, 'correct --endpoints, or check the DNS'];
    case 'tls':
      return [`TLS failed: ${message}`, 'check --cacert, --cert and --key, and the certificate of the server'];
    case 'protocol':
      return [
        `the server does not speak HTTP/1.1: ${message}`,
        'if etcd was started with --listen-client-http-urls, use one of these URLs; else correct --endpoints',
      ];
    default:
      return [`cannot connect: ${message}`, 'check --endpoints, and the network between here and the server'];
  }
}

function describeMember({ name, version }: EndpointFacts): string {
  if (!version) return 'reachable, but the server reports no etcd version';
  const member = name === undefined ? '' : `member ${name}, `;
  return `reachable: ${member}etcd ${version.server}${version.cluster === undefined ? '' : ` (cluster ${version.cluster})`}`;
}

/** Matches the error of a member that is a learner: etcd adds a member as one when it replaces another. */
const IS_LEARNER = /not supported for learner/;

const READ = { v2: 'a quorum read', v3: 'a linearizable read' } as const;

function health(member: EndpointFacts, context: Context, finding: MakeFinding): Finding[] {
  const { healthy, read, quorumReadMs, leader } = member;
  const { anyUsable, basis, api } = context;
  const level = anyUsable ? 'warn' : 'fail';
  if (read?.is === 'failed' && IS_LEARNER.test(read.message)) {
    const text = 'the member is a learner, so it serves no locks yet: each call asks another member';
    return [finding(level, 'health', text, 'promote it with "etcdctl member promote" once it has the data')];
  }
  if (read?.is === 'failed') {
    // On etcd v3, a read can also fail while there is a quorum.
    const lacksQuorum = api === 'v2' || leader === null;
    const cause = lacksQuorum ? 'no quorum: ' : '';
    const report = healthy === false ? '; the member reports that it is unhealthy' : '';
    const advice = `${lacksQuorum ? 'start members until more than half of them run; ' : ''}${CHECK_HEALTH}`;
    return [finding(level, 'health', `${cause}${READ[api]} failed: ${read.message}${report}`, advice)];
  }
  if (healthy === false) return [finding(level, 'health', 'the member reports that it is unhealthy', CHECK_HEALTH)];
  if (quorumReadMs === undefined) return healthy ? [finding('ok', 'health', 'healthy')] : [];
  const duration = `${READ[api]} takes ${milliseconds(quorumReadMs)}`;
  if (quorumReadMs <= basis.slowMs) return [finding('ok', 'health', `healthy; ${duration}`)];
  const limit = `${milliseconds(basis.slowMs)} for a TTL of ${basis.ttl} s`;
  return [
    finding(
      'warn',
      'health',
      `slow: ${duration}; a renewal asks another member after ${limit}`,
      'use longer TTLs, or a faster disk and network',
    ),
  ];
}

function testKey({ testKey: key, testWrite, write }: EndpointFacts, finding: MakeFinding): Finding[] {
  if (key !== undefined) return [hasFullWidth(key) ? inOrder(finding) : outOfOrder(key, finding)];
  if (testWrite?.is === 'failed' && write?.is === 'done')
    return [finding('warn', 'test-key', `cannot create a test key: ${testWrite.message}`, CHECK_HEALTH)];
  if (testWrite?.is !== 'refused') return [];
  const text =
    `permission denied for a test key in ${TEST_DIR}: the order of key names was not checked, ` +
    'and the clock was read to the second only';
  return [
    finding(
      'warn',
      'test-key',
      text,
      `grant a role write access to ${TEST_DIR}/*, and run doctor as a user with that role`,
    ),
  ];
}

const inOrder = (finding: MakeFinding): Finding => finding('ok', 'names', 'key names sort in the order of creation');

function outOfOrder(key: string, finding: MakeFinding): Finding {
  const text =
    `key names such as ${key} have no leading zeros, as in etcd before 2.2, so they do not sort in the order of creation: ` +
    'python-etcd may give the lock to the wrong waiter, and this package refuses to lock';
  return finding('fail', 'names', text, 'upgrade to etcd 2.2 or later');
}

const milliseconds = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
