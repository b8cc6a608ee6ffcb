import { EventEmitter } from 'node:events';
import { inThisContext } from './context.ts';
import { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

export interface ProcessOptions {
  /** Milliseconds of its clock in one of the world. */
  readonly rate?: number;
  /** What its wall clock shows at the start of the world, in milliseconds since the epoch. */
  readonly wall?: number;
}

/** The start of each world. */
export const EPOCH = Date.UTC(2026, 0, 1);

let current: Process | undefined;

/** Returns the process whose step runs. */
export function currentProcess(): Process {
  if (!current) throw new Error('no process of the simulation runs');
  return current;
}

/** A timer of a process, as Node's own. */
export class Timer {
  readonly #process: Process;
  readonly #fn: () => void;
  readonly #ms: number;
  readonly #repeats: boolean;
  #cancel: (() => void) | undefined;

  constructor(process: Process, fn: () => void, ms: number, repeats = false) {
    this.#process = process;
    this.#fn = inThisContext(fn);
    this.#ms = ms;
    this.#repeats = repeats;
    this.#start();
  }

  #start(): void {
    this.#process.timers.add(this);
    this.#cancel = this.#process.after(this.#ms, () => {
      if (this.#repeats) this.#start();
      else this.close();
      this.#fn();
    });
  }

  close(): void {
    this.#process.timers.delete(this);
    this.#cancel?.();
    this.#cancel = undefined;
  }

  refresh(): this {
    this.close();
    this.#start();
    return this;
  }

  // A simulated process lives until it is killed, so it does not matter what keeps it alive.
  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** A process of the simulated world: with a clock of its own, and timers that others cannot see. It can be stopped and killed. */
export class Process {
  readonly name: string;
  readonly random: Random;
  readonly timers = new Set<Timer>();
  /** Emits `killed`. */
  readonly events = new EventEmitter();
  readonly #scheduler: Scheduler;
  readonly #rate: number;
  readonly #wall: number;
  /** What happens when it continues; undefined while it runs. */
  #stopped: { readonly timers: (() => void)[]; readonly others: (() => void)[]; readonly since: number } | undefined;
  #isKilled = false;
  #stoppedFor = 0;
  #continuedAt = Number.NEGATIVE_INFINITY;

  constructor(name: string, scheduler: Scheduler, seed: string, { rate = 1, wall = EPOCH }: ProcessOptions = {}) {
    this.name = name;
    this.random = new Random(`${seed} ${name}`);
    this.#scheduler = scheduler;
    this.#rate = rate;
    this.#wall = wall;
    this.events.setMaxListeners(0);
  }

  get isKilled(): boolean {
    return this.#isKilled;
  }

  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  /** Whether it is stopped, or has just continued, so that it cannot have noticed what time it is. */
  get isBehind(): boolean {
    return this.isStopped || this.#continuedAt === this.#scheduler.now;
  }

  /** Whether something that it has known since this time may be out of date: it is behind, and was stopped after that. */
  isBehindSince(time: number): boolean {
    return this.isStopped || (this.isBehind && time < this.#continuedAt);
  }

  /** Milliseconds for which it has been stopped, in all. */
  get stoppedFor(): number {
    return this.#stoppedFor + (this.#stopped ? this.#scheduler.now - this.#stopped.since : 0);
  }

  /** Its monotonic clock. */
  now(): number {
    return this.#scheduler.now * this.#rate;
  }

  /** Its wall clock. */
  wall(): number {
    return Math.floor(this.#wall + this.now());
  }

  /** Runs `step` as a step of this process after `ms` milliseconds of its clock. */
  after(ms: number, step: () => void): () => void {
    let isCanceled = false;
    const run = (): void => {
      if (!isCanceled) this.run(step);
    };
    const cancel = this.#scheduler.after(ms / this.#rate, () => {
      if (this.#stopped) this.#stopped.timers.push(run);
      else run();
    });
    return () => {
      isCanceled = true;
      cancel();
    };
  }

  /** Runs `step` as a step of this process, as soon as it runs: for what comes from outside. */
  receive(step: () => void): void {
    if (this.#stopped) this.#stopped.others.push(step);
    else this.run(step);
  }

  run(step: () => void): void {
    if (this.#isKilled) return;
    // Until the next step of the world: the microtasks of this step belong to this process, too.
    current = this;
    step();
  }

  stop(): void {
    if (!this.#isKilled) this.#stopped ??= { timers: [], others: [], since: this.#scheduler.now };
  }

  /**
   * Continues after {@link stop}: everything that has happened to it in between happens now.
   * @param first what comes first. A process that was stopped while it waited reads its sockets first; one whose event loop was blocked by
   * a timer calls the other timers first.
   */
  continue(first: 'timers' | 'others' = 'timers'): void {
    const stopped = this.#stopped;
    if (!stopped) return;
    this.#stopped = undefined;
    this.#stoppedFor += this.#scheduler.now - stopped.since;
    this.#continuedAt = this.#scheduler.now;
    const { timers, others } = stopped;
    const steps = first === 'timers' ? [...timers, ...others] : [...others, ...timers];
    for (const step of steps) this.#scheduler.after(0, () => this.receive(step));
  }

  kill(): void {
    this.#stopped = undefined;
    // What its system does now.
    this.run(() => this.events.emit('killed'));
    this.#isKilled = true;
    this.timers.clear();
  }
}
