import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { ignore } from '../../../src/base/cancellation.ts';
import { EtcdClient, type EtcdClientOptions, LockManager } from '../../../src/index.ts';
import { useAlteredMember } from '../../support/altered-member.ts';
import { ANY_API, APIS } from '../../support/apis.ts';
import { makeAuthority } from '../../support/certificates.ts';
import { debugOutput } from '../../support/debug-output.ts';
import { type EtcdMember, RECONFIGURABLE, startCluster, startEtcd, startLearner } from '../../support/etcd.ts';
import { freshName } from '../../support/locks.ts';
import { useTlsEtcd } from '../../support/secured-etcd.ts';
import { until } from '../../support/until.ts';

const LISTS = /^(GET \/v2\/members|POST \/v3\/cluster\/member\/list)$/;
const PATIENCE = { timeout: 100_000 };

function useClient(options: EtcdClientOptions): { client: EtcdClient; locks: LockManager } {
  const client = new EtcdClient({ api: ANY_API, followMembers: true, ...options });
  onTestFinished(() => client.close({ timeout: 0 }).catch(ignore));
  return { client, locks: new LockManager(client, { ttl: 15 }) };
}

/** Makes requests until the client uses exactly these members. */
async function untilUses({ client, locks }: ReturnType<typeof useClient>, urls: readonly string[]): Promise<void> {
  await until(
    async () => {
      await locks.request(freshName(), () => undefined);
      return [...new Set((await client.ping({ timeout: 3 })).map(({ url }) => url))];
    },
    (used) => String(used) === String([...urls].sort()),
    PATIENCE,
  );
}

/** Calls the membership API of a cluster. */
async function reconfigure(member: EtcdMember | undefined, path: string, message: object): Promise<Response> {
  return fetch(`${member?.url}/v3/cluster/member/${path}`, { method: 'POST', body: JSON.stringify(message) });
}

async function idOf(member: EtcdMember | undefined): Promise<string> {
  const answer = await fetch(`${member?.url}/v3/maintenance/status`, { method: 'POST', body: '{}' });
  return ((await answer.json()) as { header: { member_id: string } }).header.member_id;
}

/** Adds a member, and waits until it has a vote. */
async function grow(members: readonly EtcdMember[]): Promise<EtcdMember> {
  const added = await startLearner(members, undefined, APIS.includes('v2') ? ['--enable-v2'] : []);
  onTestFinished(() => added.stop());
  const ID = await idOf(added);
  await until(
    async () => (await reconfigure(members[0], 'promote', { ID })).ok,
    (promoted) => promoted,
  );
  return added;
}

describe.each(APIS)('with api %s, a client that follows the member list', (api) => {
  test('holds its lock while all members that it was given are replaced by others', async () => {
    const cluster = await startCluster(3, { args: RECONFIGURABLE });
    onTestFinished(() => cluster.stop());
    const [first, second, third] = cluster.members;
    const used = useClient({ api, endpoints: cluster.urls.slice(0, 1) });
    const held = await used.locks.acquire(freshName());
    await untilUses(used, cluster.urls);
    await reconfigure(first, 'remove', { ID: await idOf(third) });
    await third?.kill();
    const members = cluster.members.slice(0, 2);
    await untilUses(used, cluster.urls.slice(0, 2));
    const added = await grow(members);
    await untilUses(used, [...cluster.urls.slice(0, 2), added.url]);
    await first?.kill();
    expect(await used.locks.request(freshName(), () => 'held')).toBe('held');
    await reconfigure(second, 'remove', { ID: await listedId(added, cluster.urls[0]) });
    // Those that were given stay, although the cluster no longer has them.
    await untilUses(used, [cluster.urls[0] ?? '', cluster.urls[1] ?? '', added.url]);
    held.assertHeld();
    expect(await held.release()).toBe(true);
  });

  test('does not use what a member list names that lies, and keeps the endpoints that it was given', async () => {
    const other = await startEtcd();
    onTestFinished(() => other.stop());
    const trap = await useTrap();
    const lies = [
      other.url,
      trap.url,
      'http://127.0.0.1:1',
      'http://etcd.invalid:2379',
      'not a URL',
      'ftp://127.0.0.1',
      'http://user:secret@127.0.0.1:2379',
      `http://127.0.0.1/${'x'.repeat(500)}`,
    ];
    const many = Array.from({ length: 20_000 }, (_, at) => `http://127.9.${at >> 8}.${at & 255}:1`);
    let lists = 0;
    const alter = (asked: string) => {
      if (!LISTS.test(asked)) return undefined;
      lists += 1;
      const clientURLs = lists % 3 === 1 ? lies : lists % 3 === 2 ? many : [null, 7];
      const header = { cluster_id: clusterId };
      return { body: JSON.stringify({ header, members: [{ id: 'a', name: 'a', peerURLs: [], clientURLs }] }) };
    };
    const status = await fetch(`${inject('etcd')}/v3/maintenance/status`, { method: 'POST', body: '{}' });
    const { cluster_id: clusterId } = ((await status.json()) as { header: { cluster_id: string } }).header;
    const url = await useAlteredMember(alter);
    const used = useClient({ api, endpoints: url, username: 'app', password: 'sesame' });
    const held = await used.locks.acquire(freshName());
    await until(
      async () => {
        await used.locks.request(freshName(), () => undefined);
        return lists;
      },
      (count) => count > (api === 'both' ? 6 : 3),
      PATIENCE,
    );
    expect(new Set((await used.client.ping()).map((member) => member.url))).toEqual(new Set([url]));
    expect(await held.release()).toBe(true);
    expect(trap.requests).toBeGreaterThan(0);
    expect(trap.credentials).toEqual([]);
  });

  test('does not use a learned member once it answers for another cluster', async () => {
    let isMoved = false;
    const learned = await useAlteredMember((_, { headers, body }) => {
      if (!isMoved) return undefined;
      const moved = body.replace(/"cluster_id":"\d+"/g, '"cluster_id":"2748"');
      return { headers: { ...headers, 'x-etcd-cluster-id': 'abc' }, body: moved };
    });
    const alter = (asked: string, { body }: { body: string }) =>
      LISTS.test(asked) ? { body: body.replace(/"clientURLs":\[[^\]]*\]/, `"clientURLs":["${learned}"]`) } : undefined;
    const url = await useAlteredMember(alter);
    const used = useClient({ api, endpoints: url, randomizeEndpoints: false });
    await untilUses(used, [url, learned]);
    isMoved = true;
    const id = used.client.clusterId;
    const answers = await used.client.ping();
    for (const { url: from, ok, error } of answers) {
      expect(ok).toBe(from === url);
      if (from !== url) expect(error?.message).toMatch(/was a member of cluster \w+, but cluster abc answered/);
    }
    expect(await used.locks.request(freshName(), () => 'held')).toBe('held');
    expect(used.client.clusterId).toBe(id);
  });
});

/** Returns the id of the member with this client URL, as another member lists it. */
async function listedId(member: EtcdMember, url: string | undefined): Promise<string> {
  const answer = await reconfigure(member, 'list', {});
  const { members } = (await answer.json()) as { members: { ID: string; clientURLs: string[] }[] };
  return members.find(({ clientURLs }) => clientURLs.includes(url ?? ''))?.ID ?? '';
}

/** Starts a server that is no etcd, and notes who shows it credentials. */
async function useTrap() {
  const trap = { url: '', requests: 0, credentials: [] as string[] };
  const server = createServer(({ headers }, response) => {
    trap.requests += 1;
    if (headers.authorization !== undefined) trap.credentials.push(headers.authorization);
    response.end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  trap.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return trap;
}

test.each(APIS.filter((api) => api !== 'both'))(
  'with api %s, a list without TLS is not used by a client that was given https only',
  async (api) => {
    const authority = makeAuthority();
    const { url } = await useTlsEtcd(authority.issue());
    const used = useClient({ api, endpoints: url, ca: authority.ca });
    const isList = (line: string): boolean => line.includes(url) && /member(s|\/list): 200/.test(line);
    let lists = 0;
    await debugOutput(
      () =>
        until(
          async () => {
            await used.locks.request(freshName(), () => undefined);
            return lists;
          },
          (count) => count > 1,
          PATIENCE,
        ),
      (line) => {
        if (isList(line)) lists += 1;
      },
    );
    expect((await used.client.ping()).map((member) => member.url)).toEqual([url]);
  },
);

test('without the option, no member list is read', async () => {
  const asked: string[] = [];
  const url = await useAlteredMember((request) => {
    asked.push(request);
    return undefined;
  });
  const { locks } = useClient({ endpoints: url, followMembers: false });
  expect(await locks.request(freshName(), () => 'held')).toBe('held');
  expect(asked.filter((request) => LISTS.test(request))).toEqual([]);
  expect(() => new EtcdClient({ followMembers: 1 as never })).toThrow('followMembers must be a boolean, got 1');
});
