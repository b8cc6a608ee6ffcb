import type { Basis } from './basis.ts';
import { differenceOf } from './clock.ts';
import type { About, EndpointFacts, Facts, Finding } from './facts.ts';

/** What is to be said of the members taken together. */
export function judgeCluster(facts: Facts, basis: Basis): Finding[] {
  const reached = facts.endpoints.filter(({ unreachable }) => !unreachable);
  return [
    ...endpoints(facts),
    ...(reached.length === 0 ? [] : [...clusterIds(reached), ...leaders(reached), ...members(facts, reached)]),
    ...clocks(reached, basis),
  ];
}

const say = (level: Finding['level'], about: About, text: string, advice?: string): Finding => ({
  level,
  about,
  text,
  ...(advice === undefined ? {} : { advice }),
});

function endpoints({ given, endpoints }: Facts): Finding[] {
  const repeated = new Set(given.filter((url, at) => given.indexOf(url) < at));
  const found = [...repeated].map((url) => say('warn', 'endpoints', `${url} is given twice`, 'name each member once'));
  const byId = groupBy(endpoints, ({ id }) => id);
  for (const [id, same] of byId) {
    if (same.length < 2) continue;
    const text = `${same.map(({ endpoint }) => endpoint).join(' and ')} are one member, ${nameOf(id, endpoints)}`;
    found.push(say('warn', 'endpoints', text, 'name each member once: another address does not help when it fails'));
  }
  const clear = endpoints.filter(({ endpoint }) => endpoint.startsWith('http:'));
  if (clear.length > 0 && clear.length < endpoints.length) {
    const text = `some endpoints are in TLS, but not ${listed(clear)}`;
    found.push(say('warn', 'endpoints', text, 'use https for all: whoever can listen there can read and change locks'));
  }
  return found;
}

function clusterIds(reached: readonly EndpointFacts[]): Finding[] {
  const byId = groupBy(reached, ({ clusterId }) => clusterId);
  const [[only] = []] = byId;
  if (byId.size < 2) return only === undefined ? [] : [say('ok', 'cluster-id', `the cluster is ${only}`)];
  const which = [...byId].map(([id, some]) => `${listed(some)} of ${id}`).join('; ');
  const text = `the endpoints belong to ${byId.size} clusters: ${which}. One lock can be held in each at the same time`;
  return [say('fail', 'cluster-id', text, 'name the members of one cluster only')];
}

function leaders(reached: readonly EndpointFacts[]): Finding[] {
  const without = reached.filter(({ leader }) => leader === null);
  const byLeader = groupBy(reached, ({ leader }) => leader ?? undefined);
  const found: Finding[] = [];
  const advice = 'ask again in a few seconds; if it stays so, more than half of the members must be up and connected';
  if (without.length > 0) {
    const level = byLeader.size === 0 ? 'fail' : 'warn';
    found.push(say(level, 'leader', `there is no leader, says ${listed(without)}`, advice));
  }
  const names = [...byLeader.keys()].map((id) => nameOf(id, reached));
  // Where there are two clusters there are two leaders, and that has been said.
  const clusters = groupBy(reached, ({ clusterId }) => clusterId).size;
  if (byLeader.size === 1) found.push(say('ok', 'leader', `the leader is ${names[0]}`));
  else if (byLeader.size > 1 && clusters < 2)
    found.push(say('warn', 'leader', `the members disagree on the leader: ${names.join(', ')}`, advice));
  return found;
}

/** Those that the cluster has, and whoever asks only these endpoints would not find. */
function members({ endpoints }: Facts, reached: readonly EndpointFacts[]): Finding[] {
  const all = membersOf(reached);
  const urls = new Set(endpoints.map(({ endpoint }) => endpoint));
  const ids = new Set(endpoints.map(({ id }) => id));
  return [...all.values()]
    .filter(({ id, clientURLs }) => !ids.has(id) && !clientURLs.some((url) => urls.has(originOf(url))))
    .map(({ id, name, clientURLs }) =>
      clientURLs.length === 0
        ? say('warn', 'members', `member ${name || id} has not been started`, 'start it, or remove it from the cluster')
        : say(
            'warn',
            'members',
            `member ${name || id} of the cluster is not among the endpoints`,
            `add ${clientURLs.join(' or ')}, so that it is asked when others fail, and looked at here`,
          ),
    );
}

function clocks(reached: readonly EndpointFacts[], { ttl, margin, from }: Basis): Finding[] {
  const measured = [...new Map(reached.map((one) => [one.id ?? one.endpoint, one.clock])).values()];
  const difference = differenceOf(measured.flatMap((clock) => clock ?? []));
  if (!difference) return [];
  const { proven, likely } = difference;
  const against = `locks allow for ${seconds(margin)} with a TTL of ${ttl} s (${from})`;
  const advice = 'let all members keep time by NTP, or use longer TTLs';
  if (proven > margin) {
    const effect = 'who follows may get the lock while it is still held';
    return [
      say('fail', 'clocks', `the members' clocks differ by ${seconds(likely)}, but ${against}: ${effect}`, advice),
    ];
  }
  const text = `the members' clocks differ by ${seconds(likely)}`;
  if (likely <= margin) return [say('ok', 'clocks', `${text}; ${against}`)];
  const doubt = `${text} perhaps, ${seconds(proven)} at least, as some took long to answer; ${against}`;
  return [say('warn', 'clocks', doubt, `ask again when they are less busy; ${advice}`)];
}

function groupBy<T>(list: readonly T[], keyOf: (item: T) => string | undefined): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of list) {
    const key = keyOf(item);
    if (key !== undefined) groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return groups;
}

const membersOf = (reached: readonly EndpointFacts[]) =>
  new Map(reached.flatMap(({ members = [] }) => members).map((member) => [member.id, member]));

const nameOf = (id: string, reached: readonly EndpointFacts[]): string => membersOf(reached).get(id)?.name || id;

const listed = (some: readonly EndpointFacts[]): string => some.map(({ endpoint }) => endpoint).join(', ');

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : url);

const seconds = (value: number): string => `${value.toFixed(value < 10 ? 2 : 1)} s`;
