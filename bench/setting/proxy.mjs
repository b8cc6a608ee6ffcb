import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const RELAY = fileURLToPath(new URL('relay.mjs', import.meta.url));

/**
 * A byte-level proxy in a process of its own, so that it takes no turn on the event loop of what is measured.
 * @param delay milliseconds added to each direction
 */
export async function startProxy(target, { delay = 0 } = {}) {
  const { hostname, port } = new URL(target);
  const relay = fork(RELAY, [hostname, port, String(delay)]);
  const [hello] = await once(relay, 'message');
  return {
    url: `http://127.0.0.1:${hello.port}`,
    /** What passed since the last call: see `Tally.take`. */
    async take() {
      relay.send('take');
      const [{ taken }] = await once(relay, 'message');
      return taken;
    },
    async stop() {
      const exited = once(relay, 'exit');
      relay.kill('SIGKILL');
      await exited;
    },
  };
}
