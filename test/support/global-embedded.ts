import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';

const script = fileURLToPath(new URL('embedded-server.mjs', import.meta.url));

/** Starts the built EmbeddedEtcd in its own process, so that a test that blocks its event loop does not block the server. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(server, 'exit');
  const [url] = await Promise.race([
    once(createInterface(server.stdout), 'line') as Promise<[string]>,
    exited.then(([code]) => Promise.reject(new Error(`the embedded server exited with ${code}`))),
  ]);
  project.provide('etcd', url);
  return async () => {
    server.kill();
    await exited;
  };
}
