import { complain } from '../streams.ts';
import { hasInEnvironment, type Process, processes } from './processes.ts';

export interface FamilyOptions {
  /** The process all others come from. */
  readonly leader: number;
  /** Whether it leads a process group of its own. */
  readonly grouped: boolean;
  /** `NAME=value` of the environment that only these processes have. */
  readonly mark: string;
}

/** The processes of a job: the one that was started, and all that came of it. */
export class Family {
  readonly #options: FamilyOptions;

  constructor(options: FamilyOptions) {
    this.#options = options;
  }

  /** Sends a signal to each once: by the group where they have one, so that also those are met that are just being forked. */
  send(signal: NodeJS.Signals): void {
    const { leader, grouped } = this.#options;
    if (grouped) kill(-leader, signal);
    else for (const pid of this.#members()) kill(pid, signal);
  }

  /** Kills them all, also those that left the group. A stopped process forks no more, so none can escape in between. */
  kill(): void {
    if (this.#options.grouped) kill(-this.#options.leader, 'SIGKILL');
    const stopped = new Set<number>();
    for (;;) {
      const fresh = this.#members().filter((pid) => !stopped.has(pid));
      if (fresh.length === 0) break;
      for (const pid of fresh) {
        stopped.add(pid);
        kill(pid, 'SIGSTOP');
      }
    }
    for (const pid of stopped) kill(pid, 'SIGKILL');
  }

  /** Whether any of them still runs. */
  get alive(): boolean {
    return this.#members().length > 0;
  }

  /** Parents first. Whoever lost its parent is known by the mark. */
  #members(): number[] {
    const { leader, mark } = this.#options;
    const all = processes();
    const found = new Set<number>();
    const collect = (pid: number): void => {
      if (found.has(pid)) return;
      found.add(pid);
      for (const child of childrenOf(pid, all)) collect(child);
    };
    for (const { pid } of all) if (pid === leader || hasInEnvironment(pid, mark)) collect(pid);
    return [...found];
  }
}

const childrenOf = (pid: number, all: readonly Process[]): number[] =>
  all.filter(({ parent }) => parent === pid).map((child) => child.pid);

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // ESRCH: it ended before.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH')
      complain(`cannot send ${signal} to process ${Math.abs(pid)}: ${(error as Error).message}`);
  }
}
