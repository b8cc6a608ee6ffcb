import { between, sleep } from '../client/chance.ts';
import { HttpConnections } from './http.ts';
import { type ModelOptions, takeLocks } from './model.ts';
import { PythonClient, PythonError } from './python-client.ts';
import { PythonLock } from './python-lock.ts';

/** Times that a non-blocking `acquire` is called on a lock that others have. */
const TRIES = 3;

/** A program that holds locks of python-etcd, for much less than their TTL, as it must: python-etcd does not notice that a key has expired. */
export async function runPython(options: ModelOptions): Promise<void> {
  const { network, endpoints, client: plan, process } = options;
  const http = new HttpConnections(network);
  const now = () => process.now();
  const readTimeout = [2000, 5000, 60_000][Math.floor(Math.random() * 3)] as number;
  await takeLocks(options, async (name) => {
    const first = Math.floor(Math.random() * endpoints.length);
    const hosts = [...endpoints.slice(first), ...endpoints.slice(0, first)];
    const client = new PythonClient(http, hosts, readTimeout);
    const uuid = Buffer.from(Array.from({ length: 16 }, () => Math.floor(Math.random() * 256))).toString('hex');
    const lock = new PythonLock({ execute: client.execute, path: `/v2/keys/_locks/${name}`, uuid, now });
    return cycle(options, name, client, lock, plan.ttl);
  });
  http.close();
}

async function cycle(
  { report, client: plan }: ModelOptions,
  name: string,
  client: PythonClient,
  lock: PythonLock,
  ttl: number,
): Promise<boolean> {
  const call = report.call(`python-etcd's Lock ${name}`, 0);
  let isHeld = false;
  try {
    await client.open();
    isHeld = await acquire(lock, ttl);
    call.settled(isHeld ? 'held' : 'not available');
    if (isHeld) await hold();
  } catch (error) {
    call.settled(nameOf(error));
  }
  await lock.release().catch(nameOf);
  return isHeld;

  async function hold(): Promise<void> {
    const most = Math.min(plan.hold, ttl * 250) / 2;
    const hold = report.hold({
      lock: name,
      mode: 'exclusive',
      tokens: { v2: lock.sequence },
      isOverdue: () => lock.isOverdue,
    });
    try {
      await sleep(between(0, most));
      if (Math.random() < 0.5 && !(await lock.acquire({ blocking: false, ttl }))) return hold.lost();
      await sleep(between(0, most));
      if (Math.random() < 0.2 && !(await lock.isAcquired())) hold.lost();
    } finally {
      hold.ended();
    }
  }
}

async function acquire(lock: PythonLock, ttl: number): Promise<boolean> {
  if (Math.random() < 0.8) {
    const start = performance.now();
    const isHeld = await lock.acquire({ ttl });
    // A wait uses up the TTL, so renew the key.
    return performance.now() - start < ttl * 250 ? isHeld : lock.acquire({ blocking: false, ttl });
  }
  for (let left = TRIES; left > 0; left -= 1) {
    if (await lock.acquire({ blocking: false, ttl })) return true;
    await sleep(between(0, ttl * 250));
  }
  return false;
}

/** The class of an error of python-etcd. @throws any other error */
function nameOf(error: unknown): string {
  if (error instanceof PythonError) return `python-etcd: ${error.name}`;
  throw error;
}
