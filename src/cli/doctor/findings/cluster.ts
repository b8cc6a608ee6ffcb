import type { Basis } from '../basis.ts';
import type { EndpointFacts, Facts, Finding } from '../facts.ts';
import { differenceOf } from '../v2/clock.ts';
import { findingFor } from './finding.ts';

/** Returns the findings for the cluster as a whole. */
export function judgeCluster(facts: Facts, basis: Basis): Finding[] {
  const reached = facts.endpoints.filter(({ unreachable }) => !unreachable);
  return [
    ...endpoints(facts),
    ...(reached.length === 0
      ? []
      : [...clusterIds(reached), ...leaders(reached), ...members(facts, reached), ...advertised(facts, reached)]),
    ...clocks(reached, basis),
  ];
}

const finding = findingFor();

function endpoints({ given, endpoints }: Facts): Finding[] {
  const repeated = new Set(given.filter((url, at) => given.indexOf(url) < at));
  const found = [...repeated].map((url) =>
    finding('warn', 'endpoints', `${url} is listed more than once`, 'list each member once'),
  );
  const byId = groupBy(endpoints, ({ id }) => id);
  for (const [id, same] of byId) {
    if (same.length < 2) continue;
    const text = `${same.map(({ endpoint }) => endpoint).join(' and ')} are the same member, ${nameOf(id, endpoints)}`;
    found.push(
      finding('warn', 'endpoints', text, 'list each member once: a second address does not help when the member fails'),
    );
  }
  const plain = endpoints.filter(({ endpoint }) => endpoint.startsWith('http:'));
  if (plain.length > 0 && plain.length < endpoints.length) {
    const text = `some endpoints use TLS, but not ${listed(plain)}`;
    found.push(
      finding(
        'warn',
        'endpoints',
        text,
        'use https for all endpoints: without TLS, others on the network can read and change locks',
      ),
    );
  }
  return found;
}

function clusterIds(reached: readonly EndpointFacts[]): Finding[] {
  const byId = groupBy(reached, ({ clusterId }) => clusterId);
  const [[only] = []] = byId;
  if (byId.size < 2) return only === undefined ? [] : [finding('ok', 'cluster-id', `the cluster ID is ${only}`)];
  const which = [...byId].map(([id, some]) => `${listed(some)} in ${id}`).join('; ');
  const text = `the endpoints belong to ${byId.size} clusters: ${which}. The same lock can be held in each cluster at the same time`;
  return [finding('fail', 'cluster-id', text, 'list the members of one cluster only')];
}

function leaders(reached: readonly EndpointFacts[]): Finding[] {
  const without = reached.filter(({ leader }) => leader === null);
  const byLeader = groupBy(reached, ({ leader }) => leader ?? undefined);
  const found: Finding[] = [];
  const advice =
    'run doctor again in a few seconds; if the problem persists, ensure that more than half of the members are up and connected';
  if (without.length > 0) {
    const level = byLeader.size === 0 ? 'fail' : 'warn';
    found.push(finding(level, 'leader', `no leader, according to ${listed(without)}`, advice));
  }
  const names = [...byLeader.keys()].map((id) => nameOf(id, reached));
  // Two clusters have two leaders. The finding for the cluster IDs covers that.
  const clusters = groupBy(reached, ({ clusterId }) => clusterId).size;
  if (byLeader.size === 1) found.push(finding('ok', 'leader', `the leader is ${names[0]}`));
  else if (byLeader.size > 1 && clusters < 2)
    found.push(finding('warn', 'leader', `the members disagree on the leader: ${names.join(', ')}`, advice));
  return found;
}

/** Returns a warning for each member of the cluster that is not among the endpoints. */
function members({ endpoints, withoutGateway = [] }: Facts, reached: readonly EndpointFacts[]): Finding[] {
  const all = membersOf(reached);
  const lacking = new Set(withoutGateway);
  const urls = new Set(endpoints.map(({ endpoint }) => endpoint));
  const ids = new Set(endpoints.map(({ id }) => id));
  return [...all.values()]
    .filter(({ id, clientURLs }) => !ids.has(id) && !clientURLs.some((url) => urls.has(originOf(url))))
    .map(({ id, name, clientURLs }) =>
      clientURLs.length === 0
        ? finding(
            'warn',
            'members',
            `member ${name || id} has never been started`,
            'start it, or remove it from the cluster',
          )
        : finding(
            'warn',
            'members',
            `member ${name || id} of the cluster is not in the list of endpoints`,
            `add ${urlsToAdd(clientURLs, lacking)}, so that clients can fail over to this member and doctor can check it`,
          ),
    );
}

function urlsToAdd(clientURLs: readonly string[], lacking: ReadonlySet<string>): string {
  const suitable = clientURLs.filter((url) => !lacking.has(url));
  return suitable.length > 0 ? suitable.join(' or ') : 'its URL that serves the v3 gateway';
}

/** Returns a warning for members that advertise URLs without a gateway: the list of members must not be used as endpoints. */
function advertised({ withoutGateway = [] }: Facts, reached: readonly EndpointFacts[]): Finding[] {
  const lacking = new Set(withoutGateway);
  return [...membersOf(reached).values()].flatMap(({ id, name, clientURLs }) => {
    const urls = clientURLs.filter((url) => lacking.has(url));
    if (urls.length === 0) return [];
    const text = `member ${name || id} advertises URLs without a v3 gateway: ${urls.join(', ')}`;
    const advice =
      'do not copy endpoints from the list of members; if etcd runs with --listen-client-http-urls, use those URLs of each member';
    return [finding('warn', 'members', text, advice)];
  });
}

function clocks(reached: readonly EndpointFacts[], { ttl, margin, from }: Basis): Finding[] {
  const measured = [...new Map(reached.map((one) => [one.id ?? one.endpoint, one.clock])).values()];
  const difference = differenceOf(measured.flatMap((clock) => clock ?? []));
  if (!difference) return [];
  const { proven, likely } = difference;
  const limit = `the limit is ${seconds(margin)} for a TTL of ${ttl} s (${from})`;
  const advice = 'synchronize the clocks of all members with NTP, or use longer TTLs';
  if (proven > margin) {
    const effect = 'The next waiter may get the lock while it is still held';
    return [finding('fail', 'clocks', `the members' clocks differ by ${seconds(likely)}; ${limit}. ${effect}`, advice)];
  }
  if (likely <= margin) return [finding('ok', 'clocks', `the members' clocks differ by ${seconds(likely)}; ${limit}`)];
  const estimate = `about ${seconds(likely)}, at least ${seconds(proven)}, because some members responded slowly`;
  const text = `the members' clocks differ by ${estimate}; ${limit}`;
  return [finding('warn', 'clocks', text, `run doctor again when the members are less busy; ${advice}`)];
}

function groupBy<T>(list: readonly T[], keyOf: (item: T) => string | undefined): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of list) {
    const key = keyOf(item);
    if (key === undefined) continue;
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

const membersOf = (reached: readonly EndpointFacts[]) =>
  new Map(reached.flatMap(({ members = [] }) => members).map((member) => [member.id, member]));

const nameOf = (id: string, reached: readonly EndpointFacts[]): string => membersOf(reached).get(id)?.name || id;

const listed = (some: readonly EndpointFacts[]): string => some.map(({ endpoint }) => endpoint).join(', ');

const originOf = (url: string): string => (/^https?:/.test(url) && URL.canParse(url) ? new URL(url).origin : url);

const seconds = (value: number): string => `${value.toFixed(value < 10 ? 2 : 1)} s`;
