/** Findings on which APIs a member has. */
import type { StoreApi } from '../../../client.ts';
import type { EndpointFacts, Finding, Presence } from '../facts.ts';
import { numbersOf } from '../version.ts';
import { CHECK_HEALTH, type MakeFinding } from './finding.ts';

const NAMES = { v2: 'v2 API', v3: 'v3 gateway' } as const;

/** Advice for an answer that is not from etcd. */
const CHECK_SERVER = 'check that this is an etcd server, and that no proxy in front of it changes answers';

/**
 * Returns the finding on the API that the locks use.
 * @param level level of a problem that only this member may have
 */
export function judgeOwnApi(
  member: EndpointFacts,
  api: StoreApi,
  level: Finding['level'],
  finding: MakeFinding,
): Finding {
  const presence = member[api];
  if (!presence) return finding(level, api, `the ${NAMES[api]} did not respond in time`, CHECK_HEALTH);
  if (presence.on) return finding('ok', api, `the ${NAMES[api]} is enabled`);
  return api === 'v2' ? withoutV2(member, presence, finding) : withoutV3(member, presence, level, finding);
}

/** Returns a finding, never a problem, on the other API. */
export function judgeOtherApi(member: EndpointFacts, api: StoreApi, finding: MakeFinding): Finding[] {
  const other = api === 'v2' ? 'v3' : 'v2';
  const presence = member[other];
  if (!presence) return [];
  if (!presence.on) return [finding('ok', other, `no ${NAMES[other]}`)];
  const suffix = member[api]?.on ? ', too' : `; use it with --api ${other}`;
  return [finding('ok', other, `the ${NAMES[other]} is enabled${suffix}`)];
}

function withoutV2(
  { version }: EndpointFacts,
  { absent, message }: Extract<Presence, { on: false }>,
  finding: MakeFinding,
): Finding {
  const [major, minor] = numbersOf(version);
  if (absent && (major > 3 || (major === 3 && minor >= 6)))
    return finding(
      'fail',
      'v2',
      'no v2 API: etcd 3.6 removed it',
      'use --api v3, with a bridge if python-etcd uses these locks; or use etcd 3.5 started with --enable-v2',
    );
  if (absent && major === 3 && minor >= 4)
    return finding('fail', 'v2', 'the v2 API is disabled', 'start etcd with --enable-v2');
  return finding('fail', 'v2', `no v2 API: ${message}`, CHECK_SERVER);
}

/** Returns a finding of this level, because clients fail over; but a failure for an etcd that is too old. */
function withoutV3(
  { version }: EndpointFacts,
  { absent, message }: Extract<Presence, { on: false }>,
  level: Finding['level'],
  finding: MakeFinding,
): Finding {
  const [major, minor] = numbersOf(version);
  if (version && (major < 3 || (major === 3 && minor < 3)))
    return finding('fail', 'v3', message, 'upgrade all members to etcd 3.3 or later');
  if (!absent) return finding(level, 'v3', `no v3 gateway: ${message}`, CHECK_SERVER);
  const advice =
    'start etcd with --enable-grpc-gateway; if it was started with --listen-client-http-urls, use one of these URLs';
  return finding(level, 'v3', 'this port serves no v3 gateway', advice);
}

/**
 * Returns a warning for a version whose leader may revoke valid leases some seconds after it was stopped for a while and continues.
 * Every version may do that within the first half second.
 */
export function judgeVersion({ version }: EndpointFacts, api: StoreApi, finding: MakeFinding): Finding[] {
  if (api === 'v2' || !version) return [];
  const [major, minor, patch] = numbersOf(version);
  const isFixed = major > 3 || minor > 5 || (minor === 5 && patch >= 13) || (minor === 4 && patch >= 31);
  if (isFixed) return [];
  const text =
    `a leader of etcd ${version.server} that was stopped for longer than a TTL may revoke valid leases when it continues, and for some ` +
    'seconds after that: holders then lose their locks. Later versions may do so only at once';
  return [finding('warn', 'version', text, 'upgrade to etcd 3.4.31 or later 3.4, 3.5.13 or later 3.5, or 3.6')];
}
