import { showUser } from '../../http/options.ts';
import { hasFullWidth } from '../../v2/paths.ts';
import type { Basis } from './basis.ts';
import type { About, EndpointFacts, Facts, Finding, Unreachable } from './facts.ts';
import { TEST_DIR } from './test-key.ts';

/** What else decides about one member. */
export interface Around {
  readonly facts: Facts;
  readonly basis: Basis;
  /** Locks can be had by some member: trouble with another one is no more than a warning. */
  readonly works: boolean;
}

/** Whether locks can be had by this member. */
export const isUsable = ({ v2, read, write }: EndpointFacts): boolean =>
  v2?.on === true && read?.is === 'done' && write?.is === 'done';

/** What is to be said of one member, most basic first. */
export function judgeEndpoint(member: EndpointFacts, around: Around): Finding[] {
  const say = sayOf(member.endpoint);
  const trouble = around.works ? 'warn' : 'fail';
  if (member.unreachable) return [say(trouble, 'reachable', ...cannotBeAsked(member.unreachable))];
  const answers = say('ok', 'reachable', described(member));
  if (!member.v2) return [answers, say(trouble, 'v2', 'it did not say in time whether it serves the v2 API', HEALTH)];
  if (!member.v2.on) return [answers, withoutV2(member.v2, member.version, say)];
  return [
    answers,
    say('ok', 'v2', 'the v2 API is on'),
    ...health(member, around, say),
    ...access(member, around, say),
    ...guest(member, say),
    ...testKey(member, say),
  ];
}

type Say = (level: Finding['level'], about: About, text: string, advice?: string) => Finding;

const sayOf =
  (endpoint: string): Say =>
  (level, about, text, advice) => ({ level, about, endpoint, text, ...(advice === undefined ? {} : { advice }) });

const HEALTH = 'look at its log, its disk, and its connection to the other members';

function cannotBeAsked({ reason, message }: Unreachable): [string, string] {
  switch (reason) {
    case 'refused':
      return [`nothing listens there: ${message}`, 'start etcd there, or mend --endpoints'];
    case 'silent':
      return [`it is silent: ${message}`, 'see whether it is stopped, overloaded, or behind a firewall'];
    case 'name':
      return [`its name is not known: ${message}`, 'mend --endpoints, or the DNS'];
    case 'tls':
      return [`TLS stands in the way: ${message}`, 'mend --cacert, --cert and --key, or its certificate'];
    default:
      return [`it cannot be reached: ${message}`, 'mend --endpoints, or what stands between'];
  }
}

function described({ name, version }: EndpointFacts): string {
  if (!version) return 'it answers, but tells no version of etcd';
  const who = name === undefined ? '' : `member ${name}, `;
  return `it answers: ${who}etcd ${version.server}${version.cluster === undefined ? '' : ` (cluster ${version.cluster})`}`;
}

function withoutV2(v2: { absent: boolean; message: string }, version: EndpointFacts['version'], say: Say): Finding {
  const [major = 0, minor = 0] = (version?.server ?? '').split('.').map(Number);
  if (v2.absent && (major > 3 || (major === 3 && minor >= 6)))
    return say('fail', 'v2', 'it has no v2 API: etcd 3.6 removed it', 'stay on etcd 3.5, started with --enable-v2');
  if (v2.absent && major === 3 && minor >= 4)
    return say('fail', 'v2', 'the v2 API is off', 'start it with --enable-v2');
  return say('fail', 'v2', `it serves no v2 API: ${v2.message}`, 'see that this is etcd, and what stands in between');
}

function health({ healthy, read, quorumReadMs }: EndpointFacts, { works, basis }: Around, say: Say): Finding[] {
  const trouble = works ? 'warn' : 'fail';
  if (read?.is === 'failed') {
    const says = healthy === false ? ', and it calls itself unhealthy' : '';
    const advice = `start the members that are missing: more than half are needed; ${HEALTH}`;
    return [say(trouble, 'health', `it finds no quorum: a quorum read gave ${read.message}${says}`, advice)];
  }
  if (healthy === false) return [say(trouble, 'health', 'it calls itself unhealthy', HEALTH)];
  if (quorumReadMs === undefined) return healthy ? [say('ok', 'health', 'it is healthy')] : [];
  const takes = `a quorum read takes ${milliseconds(quorumReadMs)}`;
  if (quorumReadMs <= basis.renewalMs / 2) return [say('ok', 'health', `it is healthy; ${takes}`)];
  const limit = `an attempt to renew a TTL of ${basis.ttl} s gets ${milliseconds(basis.renewalMs)}`;
  return [say('warn', 'health', `it is slow: ${takes}, and ${limit}`, 'use longer TTLs, or a faster disk and network')];
}

/** Locks need both. Where no quorum is found nothing can be told of either. */
function access({ auth, read, write }: EndpointFacts, { facts, works }: Around, say: Say): Finding[] {
  const { user, lockPrefix } = facts;
  const everybody = auth ? 'whoever has no password' : 'everybody';
  const who = user === undefined ? everybody : `user ${showUser(user)}`;
  const refused = [read?.is === 'refused' && 'read', write?.is === 'refused' && 'write'].filter((what) => what);
  if (refused.length > 0) {
    const advice =
      user === undefined
        ? 'give --user, with its password in ETCDCTL_PASSWORD or --password-file'
        : `check the password, and that its roles may read and write ${lockPrefix}/*`;
    return [say('fail', 'access', `${who} may not ${refused.join(' nor ')} below ${lockPrefix}`, advice)];
  }
  if (read?.is === 'failed') return [];
  if (write?.is === 'failed')
    return [say(works ? 'warn' : 'fail', 'access', `it reads, but does not write: ${write.message}`, HEALTH)];
  if (auth === false && user !== undefined) {
    const text = `auth is off: ${who} is let in, and so is everybody`;
    return [say('warn', 'access', text, 'switch auth on, if you rely on it')];
  }
  const state = auth === undefined ? '' : `auth is ${auth ? 'on' : 'off'}: `;
  return [say('ok', 'access', `${state}${who} may read and write below ${lockPrefix}`)];
}

function guest({ guest: may }: EndpointFacts, say: Say): Finding[] {
  const what = [may?.read && 'read', may?.write && 'write'].filter((word) => word).join(' and ');
  if (what === '') return [];
  const text = `whoever has no password may ${what} there, too`;
  return [say('warn', 'guest', text, 'take that from the role guest, unless you want it so')];
}

function testKey({ testKey: key, testWrite, write }: EndpointFacts, say: Say): Finding[] {
  if (key !== undefined) return [hasFullWidth(key) ? inOrder(say) : outOfOrder(key, say)];
  if (testWrite?.is === 'failed' && write?.is === 'done')
    return [say('warn', 'test-key', `a test key could not be made: ${testWrite.message}`, HEALTH)];
  if (testWrite?.is !== 'refused') return [];
  const text = `a test key in ${TEST_DIR} is refused: how it names keys is not known, its clock to a second only`;
  return [say('warn', 'test-key', text, `let a role write ${TEST_DIR}/*, and be doctor with it`)];
}

const inOrder = (say: Say): Finding => say('ok', 'names', 'it names keys so that their order as text is their order');

function outOfOrder(key: string, say: Say): Finding {
  const text =
    `it names keys by bare numbers, such as ${key}, as etcd before 2.2 does: text order and number order disagree, ` +
    'python-etcd may let the wrong one first, and this package refuses to lock';
  return say('fail', 'names', text, 'upgrade it to etcd 2.3 or later');
}

const milliseconds = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
