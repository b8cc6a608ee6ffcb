import { existsSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { startCluster, startEtcd } from './etcd.ts';
import { until } from './until.ts';

test('a member keeps its url and its data over a crash, and leaves nothing behind when stopped', async () => {
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
  first.pause();
  const second = await cluster.leader();
  expect(second.url).not.toBe(first.url);
  await write(second.url, 'by the second');
  first.resume();
  await until(
    () => read(first.url),
    (value) => value === 'by the second',
  );
});

test('a wrong option is told with the end of etcd’s log', async () => {
  await expect(startEtcd({ args: ['--no-such-option'] })).rejects.toThrow(
    /ended before it was ready[\s\S]*no-such-option/,
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
