// Without Docker: runs the command lines with the local etcd; only ports, host names and directories are replaced.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { makeDataDir } from '../support/data-dir.ts';
import { EtcdMember } from '../support/etcd-member.ts';
import { freePorts } from '../support/ports.ts';

interface Service {
  readonly image: string;
  readonly profiles: string[];
  readonly ports: string[];
  readonly command: string[];
}

const file = new URL('../../docker-compose.yml', import.meta.url);
const { services } = parse(readFileSync(file, 'utf8')) as { services: Record<string, Service> };
// Those of the bridge need etcd 3.6 and an image of this package: test/long/deployment.test.ts.
const names = Object.keys(services).filter((name) => !service(name).profiles.includes('bridge'));
const clusterNames = names.filter((name) => service(name).profiles.includes('cluster'));
const members = new Map<string, EtcdMember>();

beforeAll(async () => {
  // Two ports per service: for clients and for peers.
  const ports = await freePorts(names.length * 2);
  const mapped = new Map<string, number>();
  for (const name of names) members.set(name, start(name, mapped, ports));
  await Promise.all([...members.values()].map((member) => member.ready()));
});

afterAll(async () => {
  await Promise.all([...members.values()].map((member) => member.kill()));
  await Promise.all([...members.values()].map((member) => member.stop()));
});

test('the file defines a single member and a cluster of three, on the same release of etcd 3.4', () => {
  expect(names.map((name) => [name, service(name).profiles])).toEqual([
    ['etcd', ['single']],
    ['etcd1', ['cluster']],
    ['etcd2', ['cluster']],
    ['etcd3', ['cluster']],
  ]);
  expect(new Set(names.map((name) => service(name).image)).size).toBe(1);
  expect(service('etcd').image).toMatch(/etcd:v3\.4\.\d+$/);
});

test.each(names)('%s publishes its listening port as the advertised one, on loopback only', (name) => {
  const advertised = new URL(option(service(name).command, '--advertise-client-urls'));
  const listening = new URL(option(service(name).command, '--listen-client-urls'));
  expect(advertised.hostname).toBe('127.0.0.1');
  expect(service(name).ports).toEqual([`127.0.0.1:${advertised.port}:${listening.port}`]);
});

test('the published ports are 2379 and, for the cluster, 12379, 22379 and 32379', () => {
  const published = names.map((name) => service(name).ports[0]?.split(':')[1]);
  expect(published).toEqual(['2379', '12379', '22379', '32379']);
});

test.each(names)('%s creates and reads an in-order key with the v2 keys API', async (name) => {
  const { url } = member(name);
  const body = new URLSearchParams({ value: 'me', ttl: '60' });
  const created = await fetch(`${url}/v2/keys/_locks/compose-${name}`, { method: 'POST', body });
  expect(created.status).toBe(201);
  const { node } = (await created.json()) as { node: { key: string } };
  expect(node.key).toMatch(/\/\d{20}$/);
  const read = await fetch(`${url}/v2/keys${node.key}?quorum=true`);
  expect(await read.json()).toMatchObject({ node: { key: node.key, value: 'me' } });
});

test('the three members form one cluster, and the single one another', async () => {
  const cluster = await Promise.all(clusterNames.map((name) => membersSeenBy(name)));
  for (const seen of cluster) expect(seen).toEqual(clusterNames);
  expect(await membersSeenBy('etcd')).toEqual(['etcd']);
});

function service(name: string): Service {
  const found = services[name];
  if (found === undefined) throw new Error(`no service ${name}`);
  return found;
}

function member(name: string): EtcdMember {
  const found = members.get(name);
  if (found === undefined) throw new Error(`${name} was not started`);
  return found;
}

function option(command: readonly string[], name: string): string {
  const found = command.find((word) => word.startsWith(`${name}=`));
  if (found === undefined) throw new Error(`no ${name} in ${command.join(' ')}`);
  return found.slice(name.length + 1);
}

/** Starts a member; `mapped` maps `service:port` to the local port that replaces it. */
function start(name: string, mapped: Map<string, number>, free: number[]): EtcdMember {
  const dataDir = makeDataDir();
  const args = service(name)
    .command.slice(1)
    .map((word) => word.replace(/^--data-dir=.*/, `--data-dir=${dataDir}`))
    .map((word) => word.replace(/http:\/\/([\w.]+):(\d+)/g, (_, host: string, port: string) => local(host, port)));

  function local(host: string, port: string): string {
    const published = `${names.includes(host) ? host : name}:${port}`;
    const here = mapped.get(published) ?? free.pop();
    if (here === undefined) throw new Error(`${published} is a third port of its service`);
    mapped.set(published, here);
    return `http://127.0.0.1:${here}`;
  }

  const url = option(args, '--listen-client-urls');
  return new EtcdMember({ args, url, peerUrl: option(args, '--listen-peer-urls'), dataDir });
}

async function membersSeenBy(name: string): Promise<string[]> {
  const answer = (await (await fetch(`${member(name).url}/v2/members`)).json()) as { members: { name: string }[] };
  return answer.members.map((seen) => seen.name).sort();
}
