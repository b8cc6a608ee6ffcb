import { setTimeout as sleep } from 'node:timers/promises';
import { now } from '../support/stalls/stalls.mjs';
import { Contender, type ContenderKind, type Orders } from './contender.ts';
import type { FaultCluster } from './fault-cluster.ts';
import type { FaultKind } from './history.ts';
import type { World } from './inflict.ts';
import { Recorder } from './recorder.ts';

/** One lock and its contenders. All have the same TTL, which decides how long a wait may take. */
export interface Arena {
  readonly lock: string;
  /** Seconds. */
  readonly ttl: number;
  readonly contenders: readonly ContenderKind[];
  /** Further orders for all contenders. */
  readonly orders: Pick<Orders, 'longHold'>;
  /** Further orders for every second contender. */
  readonly others: Pick<Orders, 'timeout' | 'trusting'>;
  /** Whether its contenders are stopped and killed. */
  readonly rough: boolean;
}

export const ARENAS: readonly Arena[] = [
  // Long holds that no outage shorter than 5 s may end.
  {
    lock: 'steady',
    ttl: 15,
    contenders: ['lock', 'lock', 'manager', 'manager'],
    orders: { longHold: 8 },
    others: {},
    rough: false,
  },
  // A short TTL, so that waits for the expiry of killed contenders do not take most of the time.
  {
    lock: 'rough',
    ttl: 5,
    contenders: ['lock', 'lock', 'manager', 'manager', 'python', 'python'],
    orders: {},
    others: { timeout: 20, trusting: true },
    rough: true,
  },
];

/** All contenders, including those that replace killed ones. */
export class Crew implements World {
  readonly cluster: FaultCluster;
  readonly recorder = new Recorder();
  readonly kinds = new Map<string, ContenderKind>();
  readonly crashes: string[] = [];
  readonly #resource: string;
  readonly #present = new Set<Contender>();

  constructor(cluster: FaultCluster, resource: string) {
    this.cluster = cluster;
    this.#resource = resource;
  }

  start(): void {
    for (const arena of ARENAS) for (const kind of arena.contenders) this.#add(arena, kind);
  }

  victims(): Contender[] {
    const rough = ARENAS.filter((arena) => arena.rough).map(({ lock }) => lock);
    return [...this.#present].filter(({ orders }) => rough.includes(orders.lock));
  }

  holder(): Contender | undefined {
    return this.victims().find(({ who, orders }) => who === this.recorder.holder(orders.lock));
  }

  replace(kind: FaultKind, contender: Contender): void {
    const arena = ARENAS.find(({ lock }) => lock === contender.orders.lock);
    if (arena === undefined) throw new Error(`no arena has the lock of contender ${contender.who}`);
    const over = this.recorder.begin(kind, [contender.who]);
    contender.kill();
    this.recorder.listener(arena.lock)({ at: now(), who: contender.who, kind: 'died' });
    over();
    this.#add(arena, contender.kind);
  }

  /** Asks all contenders to finish their turns, and kills those that do not. Resolves to the names of the killed ones. */
  async quit(): Promise<string[]> {
    // Each entry may be behind one of python-etcd that only expires.
    const patience = Math.max(...ARENAS.map(({ ttl, contenders }) => ttl * contenders.length)) * 1000;
    const ended = [...this.#present].map((contender) => contender.ended);
    for (const contender of this.#present) contender.quit();
    await Promise.race([Promise.all(ended), sleep(patience, undefined, { ref: false })]);
    const stuck = [...this.#present].map(({ who }) => who);
    await this.kill();
    return stuck;
  }

  async kill(): Promise<void> {
    const all = [...this.#present];
    for (const contender of all) contender.kill();
    await Promise.all(all.map(({ ended }) => ended));
  }

  #add({ lock, ttl, orders, others }: Arena, kind: ContenderKind): void {
    const number = this.kinds.size + 1;
    const who = `${lock}-${kind}-${number}`;
    const { urls } = this.cluster;
    const first = number % urls.length;
    const contender = new Contender(
      kind,
      {
        who,
        lock,
        ttl,
        endpoints: [...urls.slice(first), ...urls.slice(0, first)],
        resource: this.#resource,
        ...orders,
        ...(number % 2 === 0 ? others : {}),
      },
      this.recorder.listener(lock),
    );
    this.kinds.set(who, kind);
    this.#present.add(contender);
    void contender.ended.then((crash) => {
      this.#present.delete(contender);
      if (crash !== undefined) this.crashes.push(crash);
    });
  }
}
