import { describe, expect, inject, test } from 'vitest';
import type { EndpointFacts, Facts, Finding } from '../../src/cli/doctor/facts.ts';
import { judge } from '../../src/cli/doctor/judge.ts';
import { useAlteredMember } from '../support/altered-member.ts';
import { runCli } from '../support/cli.ts';
import { diagnose } from '../support/doctor.ts';

const matching = (text: RegExp) => expect.stringMatching(text);

const version = (server: string) => ({ body: JSON.stringify({ etcdserver: server, etcdcluster: '3.5.0' }) });

/** Starts a member that says it runs etcd 3.6, and has no v2 API. */
const useUpgraded = (): Promise<string> =>
  useAlteredMember((asked) => {
    if (asked.endsWith(' /version')) return version('3.6.16');
    return asked.includes(' /v2/') ? { status: 404, body: '404 page not found\n' } : undefined;
  });

/**
 * Starts a member with both APIs that says it runs etcd 3.5. Keeps the requests that etcd v2 writes to its log: all writes, reads by
 * quorum and health checks.
 * @param advertised a client URL of another member, in the list of members
 */
async function useMember(advertised?: string): Promise<{ url: string; logged: readonly string[] }> {
  const logged: string[] = [];
  const url = await useAlteredMember((asked, { body }, query) => {
    const isOfV2 = asked.includes(' /v2/keys');
    if (asked.endsWith(' /health') || (isOfV2 && (!asked.startsWith('GET ') || query?.get('quorum') === 'true')))
      logged.push(asked);
    if (asked.endsWith(' /version')) return version('3.5.35');
    if (!/\/cluster\/member\/list$|\/v2\/members$/.test(asked) || advertised === undefined) return undefined;
    const list = JSON.parse(body) as { members: object[] };
    list.members.push({ ID: '7', id: '7', name: 'upgraded', peerURLs: [], clientURLs: [advertised] });
    return { body: JSON.stringify(list) };
  });
  return { url, logged };
}

const upgradeIn = ({ findings }: { findings: readonly Finding[] }): Finding[] =>
  findings.filter(({ about }) => about === 'upgrade');

test('with --api v3, doctor sends nothing that etcd v2 writes to its log: members of etcd 3.6 would panic at it', async () => {
  const { url, logged } = await useMember();
  const diagnosis = await diagnose(url, ['--api', 'v3']);
  expect(diagnosis.endpoints).toMatchObject([{ healthy: true, v2: { on: true }, write: { is: 'done' } }]);
  expect(logged).toEqual([]);
});

describe('while a member runs etcd 3.6 and another one has the v2 API, nothing is sent that etcd v2 writes to its log', () => {
  const WAYS = [
    ['is an endpoint', true],
    ['is only in the list of members', false],
  ] as const;

  test.each(WAYS)('by doctor --api v2, which fails and says so, if that member %s', async (_, isEndpoint) => {
    const upgraded = await useUpgraded();
    const { url, logged } = await useMember(upgraded);
    const diagnosis = await diagnose(isEndpoint ? [url, upgraded] : url);
    expect(diagnosis.code).toBe(1);
    expect(upgradeIn(diagnosis)).toEqual([
      {
        level: 'fail',
        about: 'upgrade',
        text: matching(
          new RegExp(`^etcd 3.6 runs at ${upgraded}, .* enabled at ${url}. So doctor has sent no such request`),
        ),
        advice: matching(/^restart these members without --enable-v2, and follow the checklist .* docs\/moving.md$/),
      },
    ]);
    expect(logged).toEqual([]);
  });

  test.each(WAYS)('by doctor --api v3, which warns, if that member %s', async (_, isEndpoint) => {
    const upgraded = await useUpgraded();
    const { url, logged } = await useMember(upgraded);
    const diagnosis = await diagnose(isEndpoint ? [url, upgraded] : url, ['--api', 'v3']);
    expect(upgradeIn(diagnosis)).toMatchObject([{ level: 'warn', text: matching(/panics at each write/) }]);
    expect(logged).toEqual([]);
  });

  test.each(WAYS)('by doctor --moving, which fails and says so, if that member %s', async (_, isEndpoint) => {
    const upgraded = await useUpgraded();
    const { url, logged } = await useMember(upgraded);
    const endpoints = isEndpoint ? `${url},${upgraded}` : url;
    const { code, stdout } = await runCli(['doctor', '--moving', '--endpoints', endpoints]);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      new RegExp(
        `fail {2}etcd 3.6 runs at ${upgraded}, so the move must be over.*\n {8}-> no client of kind v2 or both`,
      ),
    );
    expect(logged).toEqual([]);
  });
});

test('without a member of etcd 3.6, doctor --api v2 tries the locks as before', async () => {
  const { url, logged } = await useMember(inject('etcd'));
  const { endpoints } = await diagnose(url);
  expect(endpoints).toMatchObject([{ healthy: true, write: { is: 'done' } }]);
  expect(logged).toContain('GET /health');
});

describe('whether etcd 3.6 can be started is reported for etcd 3.5:', () => {
  const url = (number: number): string => `http://10.0.0.${number}:2379`;
  const member = (number: number, fields: Partial<EndpointFacts>): EndpointFacts => ({
    endpoint: url(number),
    version: { server: '3.5.35', cluster: '3.5.0' },
    v2: { on: false, absent: true, message: 'none' },
    v3: { on: true },
    id: `id${number}`,
    ...fields,
  });
  const upgradeFor = (members: readonly Partial<EndpointFacts>[], fields: Partial<Facts> = {}): Finding[] => {
    const endpoints = members.map((one, index) => member(index + 1, one));
    const given = endpoints.map(({ endpoint }) => endpoint);
    const facts = { api: 'v3', lockPrefix: '/_locks', user: undefined, ttl: undefined, given, endpoints } as const;
    return upgradeIn({ findings: judge({ ...facts, ...fields }) });
  };

  test('not yet, with each reason that can be seen', () => {
    const old = { version: { server: '3.5.31', cluster: '3.5.0' } };
    const withV2 = { v2: { on: true }, v2Content: ['/locks'], locks: { v2: ['a'] } } as const;
    const text =
      `etcd 3.6 must not be started yet: ${url(2)} must run etcd 3.5.32 or later first; the v2 API is enabled at ${url(1)}; ` +
      'locks have entries in the v2 store: "a"; the v2 store contains "/locks"';
    expect(upgradeFor([withV2, old])).toEqual([
      { level: 'ok', about: 'upgrade', text, advice: matching(/docs\/moving/) },
    ]);
  });

  test('if nothing can be seen, only etcdutl knows', () => {
    expect(upgradeFor([{}, { version: { server: '3.6.16', cluster: '3.5.0' } }], { upgraded: [url(2)] })).toMatchObject(
      [{ level: 'ok', text: matching(/only where etcdutl check v2store finds nothing$/) }],
    );
  });

  test.each([
    ['etcd 3.4, from which no upgrade to 3.6 is possible', [{ version: { server: '3.4.23', cluster: '3.4.0' } }], {}],
    ['locks on v2', [{}], { api: 'v2' }],
    ['etcd 3.6', [{ version: { server: '3.6.16', cluster: '3.6.0' } }], { upgraded: [url(1)] }],
  ] as const)('but not for %s', (_, members, fields) => {
    expect(upgradeFor(members, fields)).toEqual([]);
  });
});
