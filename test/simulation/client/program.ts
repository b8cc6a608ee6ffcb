import { AsyncLocalStorage } from 'node:async_hooks';
import { type EtcdClient, type Held, type HeldLocks, Lock, LockManager, type OpenHeld } from '../../../src/index.ts';
import type { Claim } from '../claim.ts';
import type { CallKind, ClientPlan } from '../plan.ts';
import type { HoldReport, Report } from '../report.ts';
import type { Call } from './call.ts';
import { between, chance, pick, sleep, sleepUntil } from './chance.ts';
import { claimOf, lookAt, lookAtAll } from './claim-of.ts';
import { endsNoCampaign, expected, ignoreExpected, isEvicted, wrongReason } from './expected.ts';
import { type LockSurroundings, useLock } from './lock-calls.ts';
import { looking } from './looking.ts';
import { OTHER_CALLS, SEMAPHORE, type Surroundings, takeOver, USE_LOCKS } from './other-calls.ts';

export interface ProgramOptions {
  readonly client: ClientPlan;
  readonly api: 'v2' | 'v3' | 'both';
  readonly endpoints: readonly string[];
  readonly locks: readonly string[];
  /** What it logs in with. */
  readonly user: { readonly username?: string; readonly password?: string };
  /** Whether the storm is over. */
  readonly isCalm: () => boolean;
  /** Whether it is to end at once, because it starts again with another API. */
  readonly isMoving: () => boolean;
  /** A number that no other process of the world has. */
  readonly generation: number;
  /** The Locks in use, by uuid, with their names: a process that starts again takes over those of the one before. */
  readonly disk: Map<string, string>;
}

/** How long a call waits: as long as it takes, up to its timeout in seconds, or not at all. */
interface Terms {
  readonly timeout: number;
  readonly ifAvailable?: boolean;
}

/** Limit of the semaphore: all must have the same. One for all, so that they wait for each other. */
const LIMIT = 2;

/** Seconds; 0: none. */
const TIMEOUTS = [0, 0, 1, 4, 15];

/** Milliseconds. */
const LONG_HOLD = [4000, 14_000] as const;

/** The async context of the running call: the package looks for enclosing holds in it, so it is a list. */
const contexts = new AsyncLocalStorage<readonly never[]>();

/** What a process does with one client. */
export class Program {
  readonly #client: EtcdClient;
  readonly #options: ProgramOptions & { readonly label: string };
  readonly #report: Report;
  /** Those of its Locks. */
  readonly uuids = new Set<string>();
  /** Number of Locks in use. */
  #locks = 0;
  /** Number of calls so far. */
  #calls = 0;
  #isClosed = false;
  /** Aborts the requests that wait. */
  #waits = new AbortController();

  constructor(client: EtcdClient, options: ProgramOptions & { readonly label: string }, report: Report) {
    this.#client = client;
    this.#options = options;
    this.#report = report;
  }

  /** Whether its client is closed, or about to be closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Begins no more calls, and waits for those that use a Lock: closing the client does not release it. */
  async endLocks(): Promise<void> {
    this.#isClosed = true;
    while (this.#locks > 0) await sleep(50);
  }

  choose(): CallKind {
    const weights = Object.entries(this.#options.client.calls) as [CallKind, number][];
    let at = Math.random() * weights.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [kind, weight] of weights) {
      at -= weight;
      if (at < 0) return kind;
    }
    return 'request';
  }

  async call(kind: CallKind): Promise<void> {
    const lock = pick(this.#options.locks);
    const timeout = pick(TIMEOUTS);
    const { ttl } = this.#options.client;
    switch (kind) {
      case 'request':
        return this.request(lock, { timeout });
      case 'acquire':
        return this.#acquire(lock, this.#perhapsIfAvailable(timeout));
      case 'ifAvailable':
        return this.request(lock, { ifAvailable: true, timeout: 5 });
      case 'shared':
        return this.request(lock, { mode: 'shared', timeout });
      case 'limited':
        return this.request(SEMAPHORE, { limit: LIMIT, timeout });
      case 'several':
        return this.#several(this.#perhapsIfAvailable(timeout));
      case 'lock':
        return this.#lock(lock, timeout, true);
      case 'lockNonBlocking':
        return this.#lock(lock, 5, false);
      case 'elect':
        return this.#elect(`${lock}-election`);
      case 'holdAtLeast':
        return this.request(lock, { holdAtLeast: between(0.5, Math.min(ttl, 5)), timeout });
      case 'maxHold':
        return this.request(lock, { maxHold: between(0.1, 2), timeout });
      case 'abort':
        return this.#abort(lock);
      case 'reentrant':
        return this.#reentrant(lock, timeout);
      default: {
        const uuids = new Set<string>();
        const work = () => OTHER_CALLS[kind](this.#surroundings(uuids), lock, timeout);
        if (!USE_LOCKS.includes(kind)) return work();
        await this.#withLock(work);
        for (const uuid of uuids) this.#drop(uuid, ttl + 3);
        return;
      }
    }
  }

  /** Takes over the Locks of the process before this one, which was killed while it used them. */
  async takeOver(): Promise<void> {
    const { disk, client } = this.#options;
    const left = [...disk].map(([uuid, name]) =>
      this.#withLock(async () => {
        const uuids = new Set([uuid]);
        const isAcquired = await takeOver(this.#surroundings(uuids), { name, uuid, timeout: pick(TIMEOUTS) });
        // If etcd was down, the entry of the killed process stays until its TTL has passed.
        if (!isAcquired) this.uuids.delete(uuid);
        for (const one of uuids) this.#drop(one, client.ttl + 3);
      }),
    );
    await Promise.all(left);
  }

  #keep(uuid: string, name: string): void {
    this.uuids.add(uuid);
    this.#options.disk.set(uuid, name);
  }

  /** @param ttl seconds for which an entry of the Lock may stay */
  #drop(uuid: string, ttl: number): void {
    this.#options.disk.delete(uuid);
    this.#report.drops(uuid, ttl);
  }

  /** Settles the call when `work` has the lock, or is over. */
  async #settle(
    what: string,
    timeout: number,
    work: (call: Call) => Promise<unknown>,
    isForSeveral = false,
  ): Promise<void> {
    this.#calls += 1;
    const label = `${this.#options.label}${this.#calls}`;
    const call = this.#report.call(what, timeout, { isForSeveral, label });
    const { ttl, name: identity } = this.#options.client;
    const manager = new LockManager(this.#client, { ttl, label });
    const identified = () => new LockManager(this.#client, { ttl, label, identity });
    const context: readonly never[] = [];
    try {
      await contexts.run(context, () => work({ ...call, manager, identified, context }));
      call.settled('ended');
    } catch (error) {
      call.settled(error instanceof Error ? error.name : String(error));
      this.#report.loses(error);
      if (!expected(error) || wrongReason(error, this.#report.isPlain)) this.#report.unexpected(what, error);
    } finally {
      call.ended();
    }
  }

  /** Works under a lock until it is lost, or for some time. */
  async #work(held: Held, { context }: Pick<Call, 'context'>, terms: Partial<Claim> = {}): Promise<void> {
    const { ttl } = this.#options.client;
    const hold = this.#report.hold({ ...claimOf(held), ttl, ...terms });
    if (chance(0.1)) lookAt(held, this.#client);
    await looking(
      () => hold.isValidFor(held.expiresIn()),
      () => this.#until(held.signal, hold, context),
    );
  }

  /** @param context in which the listeners of a loss must run */
  async #until(signal: AbortSignal, hold: HoldReport, context: unknown): Promise<void> {
    if (signal.aborted) return hold.lost(signal.reason);
    const lost = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => {
        if (contexts.getStore() !== context)
          this.#report.unexpected('a listener of a loss', new Error('it runs in the async context of another call'));
        hold.lost(signal.reason);
        resolve();
      });
    });
    const { hold: most, longHolds } = this.#options.client;
    const { promise, cancel } = sleepUntil(chance(longHolds) ? between(...LONG_HOLD) : between(0, most));
    await Promise.race([lost, promise]);
    cancel();
    hold.ended();
  }

  async request(
    lock: string,
    options: Parameters<LockManager['request']>[1] & object,
    what = 'request',
  ): Promise<void> {
    const { timeout = 0, limit, maxHold, holdAtLeast } = options as Partial<Record<string, number>>;
    await this.#settle(`${what} ${lock} ${JSON.stringify(options)}`, timeout, ({ since, settled, manager, context }) =>
      manager.request(lock, { signal: this.#waits.signal, ...options }, async (held) => {
        settled(held ? 'held' : 'not available');
        if (held) await this.#work(held, { context }, { since, limit, maxHold, holdAtLeast });
      }),
    );
  }

  #perhapsIfAvailable(timeout: number): Terms {
    return chance(0.2) ? { ifAvailable: true, timeout: 5 } : { timeout };
  }

  async #acquire(lock: string, options: Terms): Promise<void> {
    const work = async ({ since, settled, manager, context }: Call): Promise<void> => {
      const held: OpenHeld | null = await manager.acquire(lock, options);
      settled(held ? 'held' : 'not available');
      if (!held) return;
      await this.#work(held, { context }, { since });
      const release = () => (chance(0.5) ? held.release() : held[Symbol.asyncDispose]());
      const released = this.#settle(`release ${lock}`, 2, release);
      if (chance(0.2)) this.#endWaits();
      await released;
    };
    await this.#settle(`acquire ${lock} ${JSON.stringify(options)}`, options.timeout, work);
  }

  async #several(options: Terms): Promise<void> {
    const names = this.#options.locks.filter(() => chance(0.7));
    if (chance(0.5)) names.reverse();
    if (names.length === 0) return;
    const work = ({ settled, manager, context }: Call): Promise<unknown> =>
      manager.request(names, options, async (held: HeldLocks | null) => {
        settled(held ? 'held' : 'not available');
        if (!held) return;
        const claims = names.map((name) => ({ ...claimOf(held.get(name)), isOneOfSeveral: true }));
        this.#report.takesInOrder(claims);
        for (const each of held.all) lookAt(each, this.#client);
        lookAtAll(held);
        const holds = claims.map((claim) => this.#report.hold(claim));
        const all = {
          isValidFor: () => {},
          lost: (why: unknown) => {
            for (const hold of holds) hold.lost(why);
          },
          ended: () => {
            for (const hold of holds) hold.ended();
          },
        };
        await this.#until(held.signal, all, context);
      });
    await this.#settle(`request ${names} ${JSON.stringify(options)}`, options.timeout, work, true);
  }

  /** Calls that use a Lock. */
  async #withLock(work: () => Promise<void>): Promise<void> {
    this.#locks += 1;
    await work().finally(() => {
      this.#locks -= 1;
    });
  }

  /** Aborts the calls that wait. */
  #endWaits(): void {
    this.#waits.abort(new Error('enough of it'));
    this.#waits = new AbortController();
  }

  #lock(name: string, timeout: number, blocking: boolean): Promise<void> {
    const around: LockSurroundings = {
      client: this.#client,
      report: this.#report,
      settle: (...args) => this.#settle(...args),
      until: (...args) => this.#until(...args),
      lockTtl: this.#options.client.ttl,
      shortTtl: this.#options.client.shortTtl,
      isClosed: () => this.isClosed,
      onLock: (uuid) => this.#keep(uuid, name),
      onDropped: (uuid) => this.#drop(uuid, this.#options.client.ttl),
    };
    return this.#withLock(() => useLock(around, { name, timeout, blocking }));
  }

  async #elect(name: string): Promise<void> {
    const stop = new AbortController();
    const { cancel } = sleepUntil(between(500, 5000), () => stop.abort(new Error('enough of it')));
    const identity = chance(0.2) ? this.#options.client.name : undefined;
    const identified = identity === undefined ? {} : { identity };
    const what = `elect ${name} ${JSON.stringify(identified)}`;
    const campaign = async ({ manager, settled, context }: Call): Promise<void> => {
      const election = manager.elect(name, { ...(chance(0.5) ? { value: this.#options.label } : {}), ...identified });
      for await (const term of election.campaign({ signal: stop.signal })) {
        settled('held');
        const hold = this.#report.hold(claimOf(term));
        if (chance(0.2)) await election.leader().catch(ignoreExpected);
        await this.#until(term.signal, hold, context);
        await term.resign();
        await sleep(between(0, this.#options.client.pause));
      }
    };
    await this.#settle(what, 0, (call) =>
      campaign(call).catch((error: unknown) => {
        // Who has an identity gives up when its entry was removed: perhaps by another one with that identity.
        const mayEnd = identity !== undefined && !this.#report.hasNoEvictions && isEvicted(error);
        if (endsNoCampaign(error) && !mayEnd) this.#report.unexpected(what, error);
        throw error;
      }),
    );
    cancel();
  }

  async #abort(lock: string): Promise<void> {
    const stop = new AbortController();
    const { cancel } = sleepUntil(between(0, 1500), () => stop.abort(new Error('enough of it')));
    await this.request(lock, { signal: stop.signal });
    cancel();
  }

  async #reentrant(lock: string, timeout: number): Promise<void> {
    const mode = pick(['exclusive', 'exclusive', 'shared'] as const);
    await this.#settle(`request ${lock} ${mode} reentrant`, timeout, ({ since, settled, manager }) =>
      manager.request(lock, { timeout, mode, reentrant: true }, async (outer) => {
        settled('held');
        const hold = this.#report.hold({ ...claimOf(outer), since });
        outer.signal.addEventListener('abort', () => hold.lost(outer.signal.reason));
        const inner = manager.request(lock, { mode, reentrant: true }, async () => {
          await sleep(between(0, 200));
          if (chance(0.2)) throw new Error('enough of it');
        });
        // The hold lasts until then, whether its callback waits for that or not.
        const ended = inner.finally(() => hold.ended());
        if (chance(0.5)) await ended;
        else ended.catch(ignoreExpected);
      }),
    );
  }

  /** @param uuids gets those of the Locks that are made */
  #surroundings(uuids: Set<string>): Surroundings {
    const { client, api } = this.#options;
    return {
      client: { client: this.#client, api },
      report: this.#report,
      settle: (...args) => this.#settle(...args),
      work: (held, call, terms) => this.#work(held, call, terms),
      newLock: (name, uuid) => {
        const lock = new Lock(this.#client, name, uuid === undefined ? {} : { uuid });
        uuids.add(lock.uuid);
        this.#keep(lock.uuid, name);
        return lock;
      },
      sleep,
      ttl: client.ttl,
    };
  }
}
