import { setTimeout as sleep } from 'node:timers/promises';
import type { StoreApi } from '../../src/client.ts';
import type { BridgeProcess } from '../support/bridge-process.ts';
import { now } from '../support/stalls/stalls.mjs';
import { Contender, type ContenderKind, type Orders } from './contender.ts';
import type { FaultCluster } from './fault-cluster.ts';
import type { FaultKind } from './history.ts';
import type { World } from './inflict.ts';
import { Recorder } from './recorder.ts';

/** One lock and its contenders. Those of this package have the same TTL, which decides how long a wait may take. */
export interface Arena {
  readonly lock: string;
  /** Seconds. */
  readonly ttl: number;
  readonly contenders: readonly ContenderKind[];
  /** Further orders for all contenders. */
  readonly orders: Pick<Orders, 'longHold' | 'limit' | 'also'>;
  /** Further orders for every second contender. */
  readonly others: Pick<Orders, 'timeout' | 'trusting'>;
  /** Whether its contenders are stopped and killed. */
  readonly rough: boolean;
}

const FOREIGN: Readonly<Record<StoreApi, ContenderKind>> = { v2: 'python', v3: 'etcdctl' };

/**
 * Seconds. Go's Mutex of etcd 3.4 takes the lock without its key if its lease has expired while it waited, and never notices a
 * loss. So its lease is longer than most faults, and it is neither stopped nor killed. But an etcdctl that gives up leaves its entry,
 * and each election starts the TTL of that entry again: with 30 seconds, it blocked the lock for most of a campaign.
 */
const ETCDCTL_TTL = 12;

/** python-etcd does not renew, so its entries must not expire before their turn. */
const BRIDGED: Arena = {
  lock: 'bridged',
  ttl: 10,
  contenders: ['python', 'python', 'manager'],
  orders: {},
  others: {},
  rough: true,
};

/** @param bridged whether python-etcd takes part on etcd v3, through bridges */
export const arenasOn = (api: StoreApi, bridged = false): readonly Arena[] => [
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
    contenders: ['lock', 'lock', 'manager', 'manager', FOREIGN[api], FOREIGN[api]],
    orders: {},
    others: { timeout: 20, trusting: true },
    rough: true,
  },
  {
    lock: 'pool',
    ttl: 6,
    contenders: ['manager', 'manager', 'manager', 'manager', 'manager', FOREIGN[api]],
    orders: { limit: 2 },
    others: { timeout: 20 },
    rough: true,
  },
  // Requests for both locks, in any order, beside requests for one of them.
  {
    lock: 'left',
    ttl: 6,
    contenders: ['manager', 'several', 'several'],
    orders: { also: 'right' },
    others: { timeout: 20 },
    rough: true,
  },
  {
    lock: 'right',
    ttl: 6,
    contenders: ['manager', 'several', FOREIGN[api]],
    orders: { also: 'left' },
    others: { trusting: true },
    rough: true,
  },
  {
    lock: 'throne',
    ttl: 6,
    contenders: ['candidate', 'candidate', 'candidate', FOREIGN[api]],
    orders: {},
    others: { trusting: true },
    rough: true,
  },
  ...(bridged ? [BRIDGED] : []),
];

/** The TTL of a contender in an arena, in seconds. */
export const ttlOf = (kind: ContenderKind, { ttl }: Arena): number => (kind === 'etcdctl' ? ETCDCTL_TTL : ttl);

/** All contenders, including those that replace killed ones. */
export class Crew implements World {
  readonly cluster: FaultCluster;
  readonly bridges: readonly BridgeProcess[];
  readonly arenas: readonly Arena[];
  readonly recorder = new Recorder();
  readonly kinds = new Map<string, ContenderKind>();
  readonly crashes: string[] = [];
  readonly #api: StoreApi;
  readonly #resource: string;
  readonly #present = new Set<Contender>();

  constructor(api: StoreApi, cluster: FaultCluster, bridges: readonly BridgeProcess[], resource: string) {
    this.#api = api;
    this.arenas = arenasOn(api, bridges.length > 0);
    this.cluster = cluster;
    this.bridges = bridges;
    this.#resource = resource;
  }

  start(): void {
    for (const arena of this.arenas) for (const kind of arena.contenders) this.#add(arena, kind);
  }

  victims(): Contender[] {
    const rough = this.arenas.filter((arena) => arena.rough).map(({ lock }) => lock);
    return [...this.#present].filter(({ kind, orders }) => kind !== 'etcdctl' && rough.includes(orders.lock));
  }

  holder(): Contender | undefined {
    return this.victims().find(({ who, orders }) => who === this.recorder.holder(orders.lock));
  }

  replace(kind: FaultKind, contender: Contender): void {
    const arena = this.arenas.find(({ lock }) => lock === contender.orders.lock);
    if (arena === undefined) throw new Error(`no arena has the lock of contender ${contender.who}`);
    const over = this.recorder.begin(kind, [contender.who]);
    contender.kill();
    const locks = contender.kind === 'several' ? [arena.lock, arena.orders.also ?? ''] : [arena.lock];
    for (const lock of locks) this.recorder.listener(lock)({ at: now(), who: contender.who, kind: 'died' });
    over();
    this.#add(arena, contender.kind);
  }

  /** Asks all contenders to finish their turns, and kills those that do not. Resolves to the names of the killed ones. */
  async quit(): Promise<string[]> {
    // Each entry may be behind a foreign one that only expires.
    const patience = Math.max(...this.arenas.map(longestWait)) * 1000;
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

  #add(arena: Arena, kind: ContenderKind): void {
    const { lock, orders, others } = arena;
    const number = this.kinds.size + 1;
    const who = `${lock}-${kind}-${number}`;
    const urls = kind === 'python' && this.#api === 'v3' ? this.bridges.map(({ url }) => url) : this.cluster.urls;
    const first = number % urls.length;
    const contender = new Contender(
      kind,
      {
        api: this.#api,
        who,
        lock,
        ttl: ttlOf(kind, arena),
        endpoints: [...urls.slice(first), ...urls.slice(0, first)],
        resource: this.#resource,
        ...orders,
        ...(number % 2 === 0 ? others : {}),
      },
      (event) => this.recorder.listener(('lock' in event && event.lock) || lock)(event),
    );
    this.kinds.set(who, kind);
    this.#present.add(contender);
    void contender.ended.then((crash) => {
      this.#present.delete(contender);
      if (crash !== undefined) this.crashes.push(crash);
    });
  }
}

/** Seconds until all entries of an arena have expired one after the other. */
const longestWait = (arena: Arena): number => arena.contenders.reduce((sum, kind) => sum + ttlOf(kind, arena), 0);
