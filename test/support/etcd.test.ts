import { existsSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { renewCluster, startCluster, startEtcd, startMembers, stopAll } from './etcd.ts';
import { until } from './until.ts';

test('a member keeps its URL and its data after a crash, and stop() removes its data directory', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  await write(etcd.url, 'kept');
  await etcd.kill();
  expect(etcd.running).toBe(false);
  await etcd.restart();
  expect(await read(etcd.url)).toBe('kept');
  await etcd.stop();
  expect(existsSync(etcd.dataDir)).toBe(false);
});

test('a cluster elects another leader while its leader is paused', async () => {
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  const first = await cluster.leader();
  await first.pause();
  const second = await cluster.leader();
  expect(second.url).not.toBe(first.url);
  await write(second.url, 'by the second');
  first.resume();
  await until(
    () => read(first.url),
    (value) => value === 'by the second',
  );
});

test('a renewed cluster is empty and has another id, on the same URLs', async () => {
  const members = await startMembers(3);
  onTestFinished(() => stopAll(members));
  const urls = members.map((member) => member.url);
  const [url = ''] = urls;
  await write(url, 'of the first');
  const before = await clusterIds(urls);
  await renewCluster(members);
  const after = await clusterIds(urls);
  expect(await read(url)).toBeUndefined();
  expect([before.size, after.size]).toEqual([1, 1]);
  expect(after).not.toEqual(before);
});

test('the error for an invalid option contains the end of etcd’s log', async () => {
  await expect(startEtcd({ args: ['--no-such-option'] })).rejects.toThrow(
    /exited before it was ready[\s\S]*no-such-option/,
  );
});

async function write(url: string, value: string): Promise<void> {
  const answer = await fetch(`${url}/v2/keys/x`, { method: 'PUT', body: new URLSearchParams({ value }) });
  expect(answer.ok).toBe(true);
}

async function read(url: string): Promise<string | undefined> {
  const answer = (await (await fetch(`${url}/v2/keys/x`)).json()) as { node?: { value: string } };
  return answer.node?.value;
}

async function clusterIds(urls: readonly string[]): Promise<Set<string | null>> {
  const answers = await Promise.all(urls.map((url) => fetch(`${url}/v2/keys/`)));
  return new Set(answers.map((answer) => answer.headers.get('x-etcd-cluster-id')));
}
