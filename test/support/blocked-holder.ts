import type { TestContext } from 'vitest';
import type { EtcdApi } from '../../src/index.ts';
import { freshName } from './locks.ts';
import { startScript } from './script.ts';

export interface BlockedHolder {
  readonly etcd: string;
  /** Default: v2. */
  readonly api?: EtcdApi;
  /** Seconds. */
  readonly ttl: number;
  /** Seconds of each block of the event loop. */
  readonly slice: number;
  /** Authority of etcd's certificate, as PEM. */
  readonly ca?: string;
}

const SOURCE = `
  import { EtcdClient, LockManager } from 'etcd-v2-lock';
  const { ETCD, API, NAME, TTL, SLICE, CA } = process.env;
  const client = new EtcdClient({ endpoints: ETCD, api: API, ...(CA ? { ca: CA } : {}) });
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
  /** Seconds of the longest block of the event loop: longer than `slice` when the machine was busy. */
  readonly longest: number;
}

/**
 * Runs a process that holds a lock for 1.5 TTLs and blocks its event loop in slices, with one pass of the loop between two
 * slices. Fails if the hold was lost although no slice was longer than `part` of the TTL.
 */
export async function expectKept(
  { expect, onTestFinished }: Pick<TestContext, 'expect' | 'onTestFinished'>,
  { etcd, api = 'v2', ttl, slice, ca = '' }: BlockedHolder,
  part: number,
): Promise<void> {
  const numbers = { TTL: String(ttl), SLICE: String(slice) };
  const script = startScript(SOURCE, { ETCD: etcd, API: api, NAME: freshName(), ...numbers, CA: ca });
  onTestFinished(() => {
    script.process.kill('SIGKILL');
  });
  const { stdout, stderr } = await script.result;
  expect(stderr).toBe('');
  const { outcome, longest } = JSON.parse(stdout) as Outcome;
  if (longest <= ttl * part) expect(outcome).toBe('kept');
}
