import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const RELAY = fileURLToPath(new URL('relay.mjs', import.meta.url));

/**
 * Starts a byte-level proxy in its own process, so that the proxy does not use the event loop of the measured process.
 * @param delay milliseconds added to each direction
 */
export async function startProxy(target, { delay = 0 } = {}) {
  const { hostname, port } = new URL(target);
  const relay = fork(RELAY, [hostname, port, String(delay)]);
  const [hello] = await once(relay, 'message');
  return {
    url: `http://127.0.0.1:${hello.port}`,
    /** Returns the counts since the last call: see `Tally.take`. */
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
