import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { EmbeddedEtcd } from '../src/server/index.ts';
import { startEtcd } from '../test/support/etcd.ts';
import { python } from '../test/support/python.ts';

const program = fileURLToPath(new URL('client.py', import.meta.url));

/** Runs client.py; returns the result of each step. */
async function tour({ url }: { readonly url: string }): Promise<Record<string, unknown>> {
  const { hostname, port } = new URL(url);
  const { stdout } = await promisify(execFile)(python(), [program, hostname, port, '/tour']);
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
}

test('etcd and the embedded server answer every request of python-etcd’s Client alike', async () => {
  // Servers of our own, without other writers, so that indexes can be compared.
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const embedded = await EmbeddedEtcd.start();
  onTestFinished(() => embedded.stop());
  const [real, ours] = await Promise.all([tour(etcd), tour(embedded)]);
  expect(Object.keys(real).length).toBeGreaterThan(40);
  expect(ours).toEqual(real);
});
