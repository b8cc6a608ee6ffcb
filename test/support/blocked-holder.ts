import type { TestContext } from 'vitest';
import { freshName } from './locks.ts';
import { startScript } from './script.ts';

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
  let longest = 0;
  const outcome = await locks.request(NAME, async ({ signal }) => {
    const end = performance.now() + TTL * 1500;
    while (performance.now() < end && !signal.aborted) {
      const from = performance.now();
      block(Number(SLICE));
      await new Promise(setImmediate);
      longest = Math.max(longest, (performance.now() - from) / 1000);
    }
    return 'kept';
  }).catch(String);
  await client.close();
  console.log(JSON.stringify({ outcome, longest }));
`;

interface Outcome {
  /** `kept`, or why the hold was lost. */
  readonly outcome: string;
  /** Seconds the event loop was blocked at a time at most: longer than ordered where the machine ran others. */
  readonly longest: number;
}

/**
 * Runs a process that holds a lock for one and a half TTLs, in which its event loop is blocked in slices and gets one pass between
 * two of them. Fails where the hold was lost although no slice was longer than that part of the TTL.
 */
export async function expectKept(
  { expect, onTestFinished }: Pick<TestContext, 'expect' | 'onTestFinished'>,
  { etcd, ttl, slice, ca = '' }: BlockedHolder,
  part: number,
): Promise<void> {
  const script = startScript(SOURCE, { ETCD: etcd, NAME: freshName(), TTL: String(ttl), SLICE: String(slice), CA: ca });
  onTestFinished(() => {
    script.process.kill('SIGKILL');
  });
  const { stdout, stderr } = await script.result;
  expect(stderr).toBe('');
  const { outcome, longest } = JSON.parse(stdout) as Outcome;
  if (longest <= ttl * part) expect(outcome).toBe('kept');
}
