import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { runOn } from './processors.mjs';

const SOURCE = `
  import { Bridge } from 'etcd-v2-lock/server';
  const bridge = await Bridge.start({ endpoints: process.argv[1], maxPolls: 100_000, maxConnections: 100_000 });
  process.stdout.write(bridge.url + '\\n');
`;

/** Starts a bridge to this etcd in its own process. */
export async function startBridge(etcd, processors) {
  const args = ['--input-type=module', '--eval', SOURCE, '--', etcd.url];
  const child = spawn(...runOn(processors, process.execPath, args), { stdio: ['ignore', 'pipe', 'inherit'] });
  const kill = () => child.kill('SIGKILL');
  process.on('exit', kill);
  const [url] = await once(createInterface(child.stdout), 'line');
  return {
    url,
    pid: child.pid,
    async stop() {
      const exited = once(child, 'exit');
      kill();
      await exited;
      process.off('exit', kill);
    },
  };
}
