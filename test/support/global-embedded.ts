import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';

const script = fileURLToPath(new URL('embedded-server.mjs', import.meta.url));

/** An EmbeddedEtcd as built, in a process of its own: a test that keeps its event loop busy does not hold the server up. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = spawn(process.execPath, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(server, 'exit');
  const [url] = await Promise.race([
    once(createInterface(server.stdout), 'line') as Promise<[string]>,
    exited.then(([code]) => Promise.reject(new Error(`the embedded server ended with ${code}`))),
  ]);
  project.provide('etcd', url);
  return async () => {
    server.kill();
    await exited;
  };
}
