import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Milliseconds after which an etcd that does not answer has failed to start. */
const START_LIMIT = 60_000;

/** Starts an empty etcd with the v2 API. */
export async function startEtcd() {
  const directory = mkdtempSync(join(tmpdir(), 'record-'));
  const [url, peer] = [await freeUrl(), await freeUrl()];
  const child = spawn(
    'etcd',
    [
      ...['--enable-v2', '--data-dir', directory, '--listen-client-urls', url, '--advertise-client-urls', url],
      ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`],
    ],
    { stdio: 'ignore' },
  );
  const closed = once(child, 'close');
  const stop = async () => {
    child.kill('SIGKILL');
    await closed;
    rmSync(directory, { recursive: true, force: true });
  };
  const end = performance.now() + START_LIMIT;
  while (!(await isHealthy(url))) {
    if (child.exitCode !== null || performance.now() > end) {
      await stop();
      throw new Error('etcd did not start');
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const version = async () => (await (await fetch(`${url}/version`)).json()).etcdserver;
  return { url, version, stop };
}

async function isHealthy(url) {
  try {
    return (await (await fetch(`${url}/health`)).json()).health === 'true';
  } catch {
    return false;
  }
}

async function freeUrl() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}`;
}
