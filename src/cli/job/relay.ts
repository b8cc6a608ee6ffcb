import { aborted, isEnding } from '../signals.ts';
import { Bystander } from './bystander.ts';
import { surviveHangUp } from './hang-up.ts';
import type { Job } from './job.ts';
import { RELAYED, type Relayed } from './relayed.ts';
import { hasTerminal } from './terminal.ts';

/**
 * Where the signals for `run` go. Before the job runs they end the wait for it. Then they reach it and its children, once:
 * by its own process group or, where that is ours because of a terminal, by the process tree, unless the whole group, and so
 * the job, was sent the signal anyway.
 */
export class Relay {
  /** Whether the job stays in our process group, so that it can use the terminal. */
  readonly terminal = hasTerminal();
  readonly #bystander = this.terminal ? new Bystander() : undefined;
  readonly #ending = new AbortController();
  readonly #onSignal = (signal: Relayed): void => void this.#take(signal);
  #endedBy: Relayed | undefined;
  #job: Job | undefined;

  constructor() {
    for (const signal of RELAYED) process.on(signal, this.#onSignal);
    if (this.terminal) surviveHangUp();
  }

  /** Aborts when the wait is to end. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  /** What ended the wait, if anything did. */
  get endedBy(): Relayed | undefined {
    return this.#endedBy;
  }

  /** Resolves once it can tell whom a signal was sent to, and at once when one ends the wait. */
  async ready(): Promise<void> {
    await Promise.race([this.#bystander?.ready(), aborted(this.ending)]);
  }

  /** From now on signals go to this job. */
  to(job: Job): void {
    this.#job = job;
    // It came while the job was being started, which may have missed it.
    if (this.#endedBy) job.family.send(this.#endedBy, 'SIGCONT');
  }

  end(): void {
    for (const signal of RELAYED) process.off(signal, this.#onSignal);
    this.#bystander?.end();
  }

  async #take(signal: Relayed): Promise<void> {
    if (this.#job) return this.#pass(signal, this.#job);
    // The others mean nothing but to a job that runs.
    if (!isEnding(signal)) return;
    this.#endedBy ??= signal;
    this.#ending.abort();
  }

  async #pass(signal: Relayed, { family }: Job): Promise<void> {
    if (await this.#bystander?.saw(signal)) return;
    // As timeout(1) does: a stopped job could not end.
    if (isEnding(signal)) family.send(signal, 'SIGCONT');
    else family.send(signal);
  }
}
