import { EventEmitter, once } from 'node:events';
import { orAborted, Scope, sleep } from '../../base/cancellation.ts';
import type { EtcdClient, EtcdClientOptions } from '../../client.ts';
import { EtcdStaleToken } from '../../errors.ts';
import { Fence } from '../../recipe/fence.ts';
import { styled } from '../streams.ts';
import { Contender } from './contender.ts';
import { machineClock, type Report, type Task } from './protocol.ts';
import type { Screen } from './screen.ts';
import { type State, Timeline } from './timeline.ts';

/** How a demo ended. */
export interface Verdict {
  readonly isGood: boolean;
  readonly text: string;
}

/** When something happened to a contender. */
interface Moment {
  readonly who: string;
  readonly at: number;
}

/** A report of a contender, or that a write of a contender was refused, or that its process has ended. */
export interface ContenderEvent extends Moment, Omit<Report, 'is'> {
  readonly is: Report['is'] | 'refused' | 'ended';
}

export interface ContendersOptions {
  /** The name of each contender, with the command that runs it. */
  readonly commands: ReadonlyMap<string, readonly string[]>;
  readonly client: EtcdClient;
  /** Options of the clients of the contenders. */
  readonly clientOptions: EtcdClientOptions;
  /** Name of the lock. */
  readonly name: string;
  readonly screen: Screen;
  /** Ends the demo. */
  readonly signal: AbortSignal;
}

/** What a contender does after a report; nothing else for the others. */
const STATES: Partial<Record<ContenderEvent['is'], State>> = {
  waits: 'waits',
  holds: 'holds',
  releases: 'idle',
  lost: 'idle',
};

/** What all writes of the contenders go to. */
const RESOURCE = 'the resource';

/** Milliseconds between two reads of the queue. */
const READ_EVERY = 20;

/**
 * The processes that contend for a lock, what they have reported, and the resource that they write to, which a fence protects. All
 * calls reject if `signal` aborts or a contender fails.
 */
export class Contenders {
  readonly events: ContenderEvent[] = [];
  readonly #options: ContendersOptions;
  readonly #fence = new Fence();
  readonly #changes = new EventEmitter<{ event: [ContenderEvent] }>();
  readonly #contenders: ReadonlyMap<string, Contender>;
  /** Aborts when a contender fails, too. */
  readonly #scope: Scope;
  readonly #onExit = (): void => this.#kill();
  #timeline: Timeline;
  #handled = Promise.resolve();

  /** Starts the processes. They wait for their tasks. */
  constructor(options: ContendersOptions) {
    this.#options = options;
    this.#scope = new Scope(options.signal);
    this.#changes.setMaxListeners(0);
    // Also when the output fails, or after an error that nothing handles.
    process.on('exit', this.#onExit);
    this.#contenders = new Map([...options.commands].map(([name, command]) => [name, this.#start(name, command)]));
    this.#timeline = new Timeline(this.names, machineClock());
  }

  get names(): readonly string[] {
    return [...this.#contenders.keys()];
  }

  get timeline(): Timeline {
    return this.#timeline;
  }

  /** Says how many contenders, holds and overlaps there were. */
  get summary(): string {
    const holds = this.events.filter(({ is }) => is === 'holds').length;
    const { overlaps } = this.#timeline;
    return `${this.names.length} contenders, ${holds} holds, ${overlaps} ${overlaps === 1 ? 'overlap' : 'overlaps'}`;
  }

  /** Calls `listener` with each event, once it is in the timeline. */
  onEvent(listener: (event: ContenderEvent) => void): void {
    this.#changes.on('event', listener);
  }

  /** Prints what happened to a contender. */
  say({ who, at }: Moment, text: string, style?: Parameters<typeof styled>[0]): void {
    const time = `${((at - this.#timeline.start) / 1000).toFixed(2).padStart(6)} s  `;
    const width = Math.max(...this.names.map(({ length }) => length)) + 2;
    this.#options.screen.line([
      styled('dim', time),
      styled('bold', who.padEnd(width)),
      style ? styled(style, text) : text,
    ]);
  }

  /**
   * Begins the timeline when all processes are ready, and shows it.
   * @param seconds how long the demo is expected to take
   */
  async begin(seconds: number): Promise<void> {
    const { screen } = this.#options;
    screen.show(() => [[styled('dim', `  starting ${this.names.length} processes …`)]]);
    for (const name of this.names) await this.first(name, 'ready');
    const start = machineClock();
    this.#timeline = new Timeline(this.names, start);
    screen.show(() => [
      '',
      ...this.#timeline.draw({ width: screen.width, now: machineClock(), end: start + seconds * 1000 }),
    ]);
  }

  /** Gives each contender its task. The next one begins when the entry of the one before is in the queue. */
  async enterInOrder(task: Omit<Task, 'client' | 'name' | 'label'>): Promise<void> {
    const { client, clientOptions, name } = this.#options;
    for (const [at, contender] of [...this.#contenders.values()].entries()) {
      contender.begin({ ...task, client: clientOptions, name, label: contender.name });
      const queue = async () => (await client.surveyor.lock(name, { signal: this.#scope, ttls: false })).queue.entries;
      while ((await queue()).length <= at && !this.#has(contender.name, 'holds')) await this.pause(READ_EVERY / 1000);
    }
  }

  /**
   * Returns the first such event of a contender, and waits until there is one.
   * @throws {Error} if the contender ends without one
   */
  async first(who: string, is: ContenderEvent['is']): Promise<ContenderEvent> {
    for (;;) {
      this.#scope.throwIfAborted();
      const own = this.events.filter((event) => event.who === who);
      const found = own.find((event) => event.is === is);
      if (found) return found;
      if (own.some((event) => event.is === 'ended')) throw tooBusy(who);
      await orAborted(once(this.#changes, 'event'), this.#scope);
    }
  }

  /** Waits until a contender holds the lock, other than those that held it before. */
  nextHolder(...before: readonly Moment[]): Promise<ContenderEvent> {
    const others = this.names.filter((name) => before.every(({ who }) => who !== name));
    return Promise.race(others.map((name) => this.first(name, 'holds')));
  }

  /**
   * Waits while a contender holds the lock.
   * @throws {Error} if it loses the lock
   */
  async letHold(who: string, seconds: number): Promise<void> {
    await this.pause(seconds);
    if (this.#has(who, 'lost')) throw tooBusy(who);
  }

  pause(seconds: number): Promise<void> {
    return sleep(seconds * 1000, this.#scope);
  }

  get(name: string): Contender {
    return this.#contenders.get(name) as Contender;
  }

  /** Waits until the processes have ended by themselves, and their reports have been handled. */
  async ended(): Promise<void> {
    await orAborted(Promise.all([...this.#contenders.values()].map(({ ended }) => ended)), this.#scope);
    await this.#handled;
  }

  /** Kills the processes that still run or are stopped, and waits until they have ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#kill();
    await Promise.allSettled([...this.#contenders.values()].map(({ ended }) => ended));
    process.off('exit', this.#onExit);
    this.#scope.dispose();
  }

  #start(name: string, command: readonly string[]): Contender {
    const contender = new Contender(name, command, (report) => {
      this.#next(() => this.#handle({ who: name, ...report }));
    });
    contender.ended.then(
      () => this.#next(() => this.#add({ who: name, is: 'ended', at: machineClock() })),
      (error: unknown) => this.#scope.abort(error),
    );
    return contender;
  }

  /** Does something after all before: a write is checked before the next report is shown. An error ends the demo. */
  #next(work: () => unknown): void {
    this.#handled = this.#handled.then(async () => void (await work())).catch((error) => this.#scope.abort(error));
  }

  async #handle(event: ContenderEvent): Promise<void> {
    const state = STATES[event.is];
    if (state) this.#timeline.enter(event.who, state, event.at);
    this.#add(event);
    if (event.is === 'writes' && event.token !== undefined) await this.#write(event, BigInt(event.token));
  }

  async #write(event: ContenderEvent, token: bigint): Promise<void> {
    try {
      await this.#fence.accept(RESOURCE, token);
    } catch (error) {
      if (!(error instanceof EtcdStaleToken)) throw error;
      this.#timeline.mark(event.who, 'refused', event.at);
      this.#add({ ...event, is: 'refused' });
    }
  }

  #add(event: ContenderEvent): void {
    this.events.push(event);
    this.#changes.emit('event', event);
  }

  #has(who: string, is: ContenderEvent['is']): boolean {
    return this.events.some((event) => event.who === who && event.is === is);
  }

  #kill(): void {
    for (const contender of this.#contenders.values()) contender.kill();
  }
}

/** The demo relies on renewals within its short TTL, and on no others to end a hold. */
const tooBusy = (who: string): Error =>
  new Error(`${who} lost the lock too early, as can happen if the machine is very busy. Run the demo again.`);
