/** Findings on the upgrade of members to etcd 3.6, which panics at requests of etcd v2 in the log of the cluster. */
import { show } from '../../../base/checks.ts';
import type { EndpointFacts, Facts, Finding } from '../facts.ts';
import { numbersOf } from '../version.ts';
import { findingFor, firstOf } from './finding.ts';
import { storesOf } from './stores.ts';

/** The first patch of etcd 3.5 whose `etcdutl check v2store` reads the log, too. It also has all fixes for the upgrade. */
const LEAST_PATCH = 32;

const CHECKLIST = 'follow the checklist for etcd 3.6 in docs/moving.md';

const finding = findingFor();

/** Returns findings if some member runs etcd 3.5: whether etcd 3.6 can be started there, as far as requests show it. */
export function judgeUpgrade(facts: Facts): Finding[] {
  const reached = facts.endpoints.filter(({ unreachable }) => !unreachable);
  const withV2 = reached.filter(({ v2 }) => v2?.on);
  const { upgraded = [], api } = facts;
  if (upgraded.length > 0 && withV2.length > 0) return [half(upgraded, withV2, api === 'v3')];
  const left = reached.filter(({ version }) => isEtcd35(version));
  return api === 'v3' && left.length > 0 ? [next(left, withV2)] : [];
}

/** The finding for a cluster of which only some members are upgraded, while others still accept requests of etcd v2. */
function half(upgraded: readonly string[], withV2: readonly EndpointFacts[], isOnV3: boolean): Finding {
  const text =
    `etcd 3.6 runs at ${firstOf(upgraded)}, and panics at each write, quorum read and GET /health that a client sends to the v2 API, ` +
    `which is still enabled at ${listed(withV2)}`;
  return finding(
    isOnV3 ? 'warn' : 'fail',
    'upgrade',
    isOnV3 ? text : `${text}. So doctor has sent no such request, and access was not checked`,
    `restart these members without --enable-v2, and ${CHECKLIST}`,
  );
}

function next(left: readonly EndpointFacts[], withV2: readonly EndpointFacts[]): Finding {
  const old = left.filter(({ version }) => numbersOf(version)[2] < LEAST_PATCH);
  const { v2: locks = [] } = storesOf(withV2);
  const content = withV2.flatMap(({ v2Content = [] }) => v2Content);
  const blockers = [
    ...(old.length > 0 ? [`${listed(old)} must run etcd 3.5.${LEAST_PATCH} or later first`] : []),
    ...(withV2.length > 0 ? [`the v2 API is enabled at ${listed(withV2)}`] : []),
    ...(locks.length > 0 ? [`locks have entries in the v2 store: ${firstOf(locks.map(show))}`] : []),
    ...(content.length > 0 ? [`the v2 store contains ${firstOf([...new Set(content)].map(show))}`] : []),
  ];
  if (blockers.length > 0)
    return finding('ok', 'upgrade', `etcd 3.6 must not be started yet: ${blockers.join('; ')}`, CHECKLIST);
  const text =
    'no request shows what would stop an upgrade to etcd 3.6. The log and the snapshot of a member are not visible from outside: start ' +
    'etcd 3.6 only where etcdutl check v2store finds nothing';
  return finding('ok', 'upgrade', text, CHECKLIST);
}

const isEtcd35 = (version: EndpointFacts['version']): boolean => {
  const [major, minor] = numbersOf(version);
  return major === 3 && minor === 5;
};

const listed = (some: readonly EndpointFacts[]): string => firstOf(some.map(({ endpoint }) => endpoint));
