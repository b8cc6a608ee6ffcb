import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Starts a local etcd in v2 mode on ports of its own: one that runs on 2379 already may not speak v2. */
export async function startLocalEtcd() {
  const dataDir = mkdtempSync(join(tmpdir(), 'etcd-v2-lock-demo-'));
  const url = `http://127.0.0.1:${await freePort()}`;
  const peerUrl = `http://127.0.0.1:${await freePort()}`;
  const args = ['--enable-v2', '--data-dir', dataDir, '--listen-client-urls', url, '--advertise-client-urls', url];
  args.push('--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl);
  args.push('--initial-cluster', `default=${peerUrl}`);
  const etcd = spawn('etcd', args, { stdio: 'ignore' });
  const exited = once(etcd, 'exit');
  process.on('exit', () => {
    etcd.kill('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));
  await Promise.race([healthy(url), exited.then(([code]) => Promise.reject(new Error(`etcd ended with ${code}`)))]);
  const stop = async () => {
    etcd.kill();
    await exited;
  };
  return { url, stop };
}

async function healthy(url) {
  for (;;) {
    const health = await fetch(`${url}/health`).then(
      (answer) => answer.json(),
      () => undefined,
    );
    if (health?.health === 'true') return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
