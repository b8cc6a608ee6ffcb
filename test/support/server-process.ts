import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Starts a script of this directory in its own process, so that a test that blocks its event loop does not block the server. */
export async function startServerProcess(
  script: string,
  ...args: readonly string[]
): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const server = spawn(process.execPath, [path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(server, 'exit');
  const [url] = await Promise.race([
    once(createInterface(server.stdout), 'line') as Promise<[string]>,
    exited.then(([code]) => Promise.reject(new Error(`${script} exited with ${code}`))),
  ]);
  return {
    url,
    stop: async () => {
      server.kill();
      await exited;
    },
  };
}
