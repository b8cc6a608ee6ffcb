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
  /** When each of those met so far was started. */
  readonly #met = new Map<number, number>();
  /** Those that were there when they were last looked for. */
  #present: readonly number[] = [];

  constructor(options: FamilyOptions) {
    this.#options = options;
  }

  /**
   * Sends signals to each, each once: by the group where they have one, so that also those are met that are just being
   * forked.
   */
  send(...signals: readonly NodeJS.Signals[]): void {
    const { leader, grouped } = this.#options;
    // In any case, since a parent may end by the signal.
    const members = this.#members();
    for (const pid of grouped ? [-leader] : members) for (const signal of signals) kill(pid, signal);
  }

  /**
   * Kills them all, also those that left the group. All are stopped first: a stopped process forks no more, and does not
   * leave its children to others, who could not be told for the job's then.
   */
  kill(): void {
    const { leader, grouped } = this.#options;
    if (grouped) kill(-leader, 'SIGSTOP');
    // At once, since to look for more takes a while.
    for (const pid of this.#present) kill(pid, 'SIGSTOP');
    const stopped = new Set(this.#present);
    for (;;) {
      const fresh = this.#members().filter((pid) => !stopped.has(pid));
      if (fresh.length === 0) break;
      for (const pid of fresh) {
        stopped.add(pid);
        kill(pid, 'SIGSTOP');
      }
    }
    if (grouped) kill(-leader, 'SIGKILL');
    for (const pid of stopped) kill(pid, 'SIGKILL');
  }

  /** Whether any of them still runs. */
  get alive(): boolean {
    return this.#members().length > 0;
  }

  /** Parents first. Whoever lost its parent is known by the mark, or because it was met before. */
  #members(): readonly number[] {
    const { leader, mark } = this.#options;
    const all = processes();
    // Whoever is older cannot come of it.
    const born = this.#met.get(leader) ?? all.find(({ pid }) => pid === leader)?.started ?? 0;
    const found = new Set<number>();
    const collect = ({ pid, started }: Process): void => {
      if (found.has(pid)) return;
      found.add(pid);
      this.#met.set(pid, started);
      for (const child of all) if (child.parent === pid) collect(child);
    };
    for (const process of all) {
      const { pid, started } = process;
      if (started < born) continue;
      if (pid === leader || this.#met.get(pid) === started || hasInEnvironment(pid, mark)) collect(process);
    }
    this.#present = [...found];
    return this.#present;
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // ESRCH: it ended before.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH')
      complain(`cannot send ${signal} to process ${Math.abs(pid)}: ${(error as Error).message}`);
  }
}
