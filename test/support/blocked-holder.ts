import { freshName } from './locks.ts';
import { type RunningScript, startScript } from './script.ts';

export interface BlockedHolder {
  readonly etcd: string;
  /** Seconds. */
  readonly ttl: number;
  /** Seconds the event loop is blocked at a time. */
  readonly slice: number;
  /** Authority of etcd's certificate, as PEM. */
  readonly ca?: string;
}

const SOURCE = `
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  const { ETCD, NAME, TTL, SLICE, CA } = process.env;
  const client = new EtcdClient({ endpoints: ETCD, ...(CA ? { ca: CA } : {}) });
  const locks = new LockManager(client, { ttl: Number(TTL) });
  const block = (seconds) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seconds * 1000);
  const outcome = await locks.request(NAME, async ({ signal }) => {
    const end = performance.now() + TTL * 1500;
    while (performance.now() < end && !signal.aborted) {
      block(Number(SLICE));
      await new Promise(setImmediate);
    }
    return 'kept';
  }).catch(String);
  await client.close();
  console.log(outcome);
`;

/**
 * Starts a process that holds a lock for one and a half TTLs, in which its event loop is blocked in slices and gets one pass
 * between two of them. Prints `kept`, or why the hold was lost.
 */
export const startBlockedHolder = ({ etcd, ttl, slice, ca = '' }: BlockedHolder): RunningScript =>
  startScript(SOURCE, { ETCD: etcd, NAME: freshName(), TTL: String(ttl), SLICE: String(slice), CA: ca });
