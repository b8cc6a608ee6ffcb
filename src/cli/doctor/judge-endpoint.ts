import { showUser } from '../../http/options.ts';
import { hasFullWidth } from '../../v2/paths.ts';
import type { Basis } from './basis.ts';
import type { About, EndpointFacts, Facts, Finding, Unreachable } from './facts.ts';
import { TEST_DIR } from './test-key.ts';

/** What the findings for one member depend on, in addition to the facts about this member. */
export interface Context {
  readonly facts: Facts;
  readonly basis: Basis;
  /** Whether locks work on some member: then a failure of another member is only a warning. */
  readonly anyUsable: boolean;
}

/** Whether locks work on this member. */
export const isUsable = ({ v2, read, write }: EndpointFacts): boolean =>
  v2?.on === true && read?.is === 'done' && write?.is === 'done';

/** Returns the findings for one member, most fundamental first. */
export function judgeEndpoint(member: EndpointFacts, context: Context): Finding[] {
  const finding = findingFor(member.endpoint);
  const level = context.anyUsable ? 'warn' : 'fail';
  if (member.unreachable) return [finding(level, 'reachable', ...describeUnreachable(member.unreachable))];
  const reachable = finding('ok', 'reachable', describeMember(member));
  if (!member.v2) return [reachable, finding(level, 'v2', 'the v2 API did not respond in time', CHECK_HEALTH)];
  if (!member.v2.on) return [reachable, withoutV2(member.v2, member.version, finding)];
  return [
    reachable,
    finding('ok', 'v2', 'the v2 API is enabled'),
    ...health(member, context, finding),
    ...access(member, context, finding),
    ...guest(member, context, finding),
    ...testKey(member, finding),
  ];
}

type MakeFinding = (level: Finding['level'], about: About, text: string, advice?: string) => Finding;

const findingFor =
  (endpoint: string): MakeFinding =>
  (level, about, text, advice) => ({ level, about, endpoint, text, ...(advice === undefined ? {} : { advice }) });

const CHECK_HEALTH = 'check the log and the disk of the member, and its connection to the other members';

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
    default:
      return [`cannot connect: ${message}`, 'check --endpoints, and the network between here and the server'];
  }
}

function describeMember({ name, version }: EndpointFacts): string {
  if (!version) return 'reachable, but the server reports no etcd version';
  const member = name === undefined ? '' : `member ${name}, `;
  return `reachable: ${member}etcd ${version.server}${version.cluster === undefined ? '' : ` (cluster ${version.cluster})`}`;
}

function withoutV2(
  v2: { absent: boolean; message: string },
  version: EndpointFacts['version'],
  finding: MakeFinding,
): Finding {
  const [major = 0, minor = 0] = (version?.server ?? '').split('.').map(Number);
  if (v2.absent && (major > 3 || (major === 3 && minor >= 6)))
    return finding('fail', 'v2', 'no v2 API: etcd 3.6 removed it', 'use etcd 3.5, started with --enable-v2');
  if (v2.absent && major === 3 && minor >= 4)
    return finding('fail', 'v2', 'the v2 API is disabled', 'start etcd with --enable-v2');
  const advice = 'check that this is an etcd server, and that no proxy in front of it changes answers';
  return finding('fail', 'v2', `no v2 API: ${v2.message}`, advice);
}

function health(
  { healthy, read, quorumReadMs }: EndpointFacts,
  { anyUsable, basis }: Context,
  finding: MakeFinding,
): Finding[] {
  const level = anyUsable ? 'warn' : 'fail';
  if (read?.is === 'failed') {
    const report = healthy === false ? '; the member reports that it is unhealthy' : '';
    const advice = `start members until more than half of them run; ${CHECK_HEALTH}`;
    return [finding(level, 'health', `no quorum: a quorum read failed: ${read.message}${report}`, advice)];
  }
  if (healthy === false) return [finding(level, 'health', 'the member reports that it is unhealthy', CHECK_HEALTH)];
  if (quorumReadMs === undefined) return healthy ? [finding('ok', 'health', 'healthy')] : [];
  const duration = `a quorum read takes ${milliseconds(quorumReadMs)}`;
  if (quorumReadMs <= basis.renewalMs / 2) return [finding('ok', 'health', `healthy; ${duration}`)];
  const limit = `more than half the time limit of a renewal, ${milliseconds(basis.renewalMs)} for a TTL of ${basis.ttl} s`;
  return [
    finding('warn', 'health', `slow: ${duration}; that is ${limit}`, 'use longer TTLs, or a faster disk and network'),
  ];
}

const ANONYMOUS = 'unauthenticated clients';

/** Returns findings on read and write access; locks need both. Without a quorum, neither can be checked. */
function access({ auth, read, write }: EndpointFacts, { facts, anyUsable }: Context, finding: MakeFinding): Finding[] {
  const { user, lockPrefix } = facts;
  const refused = [read?.is === 'refused' && 'read', write?.is === 'refused' && 'write'].filter((what) => what);
  if (refused.length > 0) {
    const who = user === undefined ? ANONYMOUS : `user ${showUser(user)}`;
    const advice =
      user === undefined
        ? 'use --user, with the password in ETCDCTL_PASSWORD or --password-file'
        : `check the password, and that the roles of the user grant read and write access to ${lockPrefix}/*`;
    const text = `permission denied: ${who} cannot ${refused.join(' or ')} below ${lockPrefix}`;
    return [finding('fail', 'access', text, advice)];
  }
  if (read?.is === 'failed') return [];
  if (write?.is === 'failed') {
    const text = `reads succeed, but writes fail: ${write.message}`;
    return [finding(anyUsable ? 'warn' : 'fail', 'access', text, CHECK_HEALTH)];
  }
  if (auth === false && user !== undefined) {
    const text = `auth is off: user ${showUser(user)} is not checked, and everyone has access`;
    return [finding('warn', 'access', text, 'enable auth if access must be restricted')];
  }
  const everyone = auth ? ANONYMOUS : 'everyone';
  const who = user === undefined ? everyone : `user ${showUser(user)}`;
  const state = auth === undefined ? '' : `auth is ${auth ? 'on' : 'off'}: `;
  return [finding('ok', 'access', `${state}${who} can read and write below ${lockPrefix}`)];
}

function guest({ guest: can }: EndpointFacts, { facts }: Context, finding: MakeFinding): Finding[] {
  const operations = [can?.read && 'read', can?.write && 'write'].filter((word) => word).join(' and ');
  if (operations === '') return [];
  const text = `${ANONYMOUS} can also ${operations} below ${facts.lockPrefix}`;
  return [finding('warn', 'guest', text, 'revoke these permissions from the role guest, unless they are intended')];
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
  return finding('fail', 'names', text, 'upgrade to etcd 2.3 or later');
}

const milliseconds = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
