import { describe, inject, test } from 'vitest';
import { sleep } from '../../../src/base/cancellation.ts';
import { type EtcdApi, EtcdClient } from '../../../src/client.ts';
import { LockManager } from '../../../src/manager/manager.ts';
import { keysOf, untilKeys } from '../../support/both.ts';
import { freshName } from '../../support/locks.ts';
import { type ProxiedRequest, startProxy } from '../../support/proxy.ts';
import { SharedResource } from '../../support/shared-resource.ts';
import { until } from '../../support/until.ts';

const WORKERS = 4;
/** Each worker has finished so many cycles between two moves. */
const CYCLES = 3;

/** Milliseconds that nothing here takes, however busy the machine. */
const SLOW = 120_000;

const isWrite = ({ method, path }: ProxiedRequest): boolean =>
  path.startsWith('/v3/') ? path !== '/v3/watch' : method !== 'GET';

/** What the workers use: a counter that they read, and write one more than they have read. */
class Rehearsal {
  readonly name = freshName();
  readonly etcd: string;
  readonly #resource = new SharedResource();
  counter = 0;
  cycles = 0;
  /** Holds that overlapped with another. */
  overlaps = 0;

  constructor(etcd = inject('etcd')) {
    this.etcd = etcd;
  }

  async use(): Promise<void> {
    const read = this.counter;
    await this.#resource.use('exclusive', () => sleep(2)).catch(() => (this.overlaps += 1));
    this.counter = read + 1;
    this.cycles += 1;
  }
}

/** Takes the lock again and again, like a process that is restarted with another API from time to time. */
class Worker {
  readonly #rehearsal: Rehearsal;
  readonly #ended: Promise<void>;
  api: EtcdApi;
  /** With the present API. */
  cycles = 0;
  #isOver = false;

  constructor(rehearsal: Rehearsal, api: EtcdApi = 'v2') {
    this.#rehearsal = rehearsal;
    this.api = api;
    this.#ended = this.#work();
  }

  /** Restarts with another API. The others go on. */
  move(api: EtcdApi): void {
    this.api = api;
    this.cycles = 0;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#ended;
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      const { api } = this;
      const client = new EtcdClient({ endpoints: this.#rehearsal.etcd, api });
      const locks = new LockManager(client, { ttl: 60 });
      while (!this.#isOver && this.api === api) {
        await locks.request(this.#rehearsal.name, () => this.#rehearsal.use());
        if (this.api === api) this.cycles += 1;
      }
      await client.close({ timeout: SLOW / 1000 });
    }
  }
}

/** Moves the workers one at a time, through all steps. */
async function rehearse([first, ...steps]: readonly EtcdApi[], etcd?: string): Promise<Rehearsal> {
  const rehearsal = new Rehearsal(etcd);
  const workers = Array.from({ length: WORKERS }, () => new Worker(rehearsal, first));
  const go = async (): Promise<void> => {
    const target = workers.map(({ cycles }) => cycles + CYCLES);
    await until(
      () => workers.every(({ cycles }, i) => cycles >= (target[i] ?? 0)),
      (done) => done,
      { timeout: SLOW },
    );
  };
  try {
    for (const api of steps) {
      await go();
      for (const worker of workers) {
        worker.move(api);
        await go();
      }
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.end()));
  }
  return rehearsal;
}

describe.concurrent('a fleet that moves one process at a time', { timeout: 4 * SLOW }, () => {
  test.for(
    [
      ['v2', 'both', 'v3'],
      ['v2', 'both', 'v2', 'both', 'v3', 'both', 'v3'],
      ['v3', 'both', 'v2'],
    ].map((steps) => ({ steps: steps as EtcdApi[], text: steps.join(', ') })),
  )('never has two holders: $text', async ({ steps }, { expect }) => {
    const { name, cycles, counter, overlaps } = await rehearse(steps);
    expect(overlaps).toBe(0);
    expect(counter).toBe(cycles);
    expect(await keysOf(name)).toEqual({ v2: [], v3: [] });
  });

  test('never has two holders, although every tenth answer to a write is lost', async ({ expect }) => {
    const proxy = await startProxy(inject('etcd'));
    let writes = 0;
    proxy.intercept((request) => {
      if (!isWrite(request)) return undefined;
      writes += 1;
      return writes % 10 === 0 ? { swallow: true } : undefined;
    });
    const { name, cycles, counter, overlaps } = await rehearse(['v2', 'both', 'v3', 'both', 'v2'], proxy.url);
    expect(overlaps).toBe(0);
    expect(counter).toBe(cycles);
    await untilKeys(name, 0, 0);
    await proxy.stop();
  });

  test('has two holders without the step in between: this check sees that', async ({ expect }) => {
    const { cycles, counter, overlaps } = await rehearse(['v2', 'v3']);
    expect(overlaps).toBeGreaterThan(0);
    expect(counter).toBeLessThan(cycles);
  });
});
