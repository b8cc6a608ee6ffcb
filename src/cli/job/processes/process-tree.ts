import { complain } from '../../streams.ts';
import { hasInEnvironment, isInForeground, type Process, processes } from './processes.ts';

export interface ProcessTreeOptions {
  /** The process that was started; all others descend from it. */
  readonly root: number;
  /** Whether the root has a process group of its own. */
  readonly grouped: boolean;
  /** `NAME=value` in the environment of these processes and of no others. */
  readonly mark: string;
}

/** The processes of a job: the root, which was started, and its descendants. */
export class ProcessTree {
  readonly #options: ProcessTreeOptions;
  /** Start time of each process found so far. */
  readonly #known = new Map<number, number>();
  /** The processes found by the last search that succeeded. */
  #present: readonly number[];
  #hasComplained = false;

  constructor(options: ProcessTreeOptions) {
    this.#options = options;
    this.#present = [options.root];
  }

  /** Sends each of the signals once to each process; if the root has a group, only to those in the group. */
  send(...signals: readonly NodeJS.Signals[]): void {
    const { root, grouped } = this.#options;
    // Search first, even for a group: after the signal has ended a parent, its children can no longer be found through it.
    const members = this.#members();
    // A signal for the group also reaches a process that is being forked.
    for (const pid of grouped ? [-root] : members) for (const signal of signals) kill(pid, signal);
  }

  /**
   * Kills all processes, including those that left the group. All are stopped before any is killed: a stopped process cannot
   * fork, and its children can still be found through it.
   */
  kill(): void {
    const { root, grouped } = this.#options;
    if (grouped) kill(-root, 'SIGSTOP');
    // Known processes are stopped before the search, because the search takes time.
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
    if (grouped) kill(-root, 'SIGKILL');
    for (const pid of stopped) kill(pid, 'SIGKILL');
  }

  /** Whether any of the processes has not ended. */
  get alive(): boolean {
    return this.#members().length > 0;
  }

  /** Whether a terminal sends ^C and ^\ to the root. */
  get inForeground(): boolean {
    return isInForeground(this.#options.root);
  }

  /** Returns the pids. If the search fails, returns those found last that have not ended; the root counts until its group has ended. */
  #members(): readonly number[] {
    try {
      this.#present = this.#search();
    } catch (error) {
      this.#complain(error as Error);
      const { root, grouped } = this.#options;
      this.#present = this.#present.filter((pid) => isThere(grouped && pid === root ? -root : pid));
    }
    return this.#present;
  }

  #complain({ message }: Error): void {
    if (!this.#hasComplained) complain(`cannot search for the children of process ${this.#options.root}: ${message}`);
    this.#hasComplained = true;
  }

  /** A process whose parent has ended is found by the mark, or was found earlier. */
  #search(): readonly number[] {
    const { root, mark } = this.#options;
    const all = processes();
    // A process that is older than the root is not its descendant.
    const born = this.#known.get(root) ?? all.find(({ pid }) => pid === root)?.started ?? 0;
    const found = new Set<number>();
    const collect = ({ pid, started }: Process): void => {
      if (found.has(pid)) return;
      found.add(pid);
      this.#known.set(pid, started);
      for (const child of all) if (child.parent === pid) collect(child);
    };
    for (const process of all) {
      const { pid, started } = process;
      if (started < born) continue;
      if (pid === root || this.#known.get(pid) === started || hasInEnvironment(pid, mark)) collect(process);
    }
    return [...found];
  }
}

/** Whether a process, or with a negative number a process group, exists; also as a zombie. */
function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // ESRCH: the process has ended.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH')
      complain(`cannot send ${signal} to process ${Math.abs(pid)}: ${(error as Error).message}`);
  }
}
