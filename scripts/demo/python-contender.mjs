import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('contender.py', import.meta.url));

/** Runs a python-etcd contender until it exits; calls `onEvent` with each line it prints. */
export async function startPythonContender(python, { url, lock, ttl, hold }, onEvent) {
  const { hostname, port } = new URL(url);
  const child = spawn(python, [program, hostname, port, lock, String(ttl), String(hold)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface(child.stdout).on('line', onEvent);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the python-etcd contender exited with ${code}`);
}
