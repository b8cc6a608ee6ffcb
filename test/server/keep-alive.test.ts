import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { onTestFinished, test } from 'vitest';
import { createHttpServer } from '../../src/server/front/http-server.ts';
import { checkListening, listen } from '../../src/server/listening.ts';
import { makeAuthority } from '../support/certificates.ts';
import { RawConnection } from '../support/raw-connection.ts';
import { until } from '../support/until.ts';

/** Number of the timer of TCP keep-alive in /proc/net/tcp. */
const KEEP_ALIVE = '02';

/** Returns the timers of the connections that the system has on a local port. */
function timersOf(port: number): (string | undefined)[] {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const CONNECTED = '01';
  const lines = ['tcp', 'tcp6'].flatMap((file) => readFileSync(`/proc/net/${file}`, 'utf8').split('\n'));
  const fields = lines.map((line) => line.trim().split(/\s+/));
  return fields.filter(([, at, , state]) => at?.endsWith(local) && state === CONNECTED).map((line) => line[5]);
}

test.each(['http', 'https'])(
  'a connection over %s has TCP keep-alive, so that it does not stay for ever when the host of its client has disappeared',
  async (scheme) => {
    const server = createHttpServer(scheme === 'https' ? { tls: makeAuthority().issue() } : {});
    await listen(server, checkListening({}));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const accepted = once(server, 'connection');
    await RawConnection.open(`http://127.0.0.1:${port}`);
    await accepted;
    await until(
      () => timersOf(port),
      ([timer]) => timer?.startsWith(`${KEEP_ALIVE}:`) === true,
    );
  },
);
