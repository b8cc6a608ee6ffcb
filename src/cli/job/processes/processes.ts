import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { hasOwnProc, readProc } from './proc.ts';

export interface Process {
  readonly pid: number;
  readonly parent: number;
  /** Start time, in a unit that depends on the system. Distinguishes processes that had the same pid at different times. */
  readonly started: number;
}

/**
 * Returns all processes except zombies.
 * @throws {Error} if they cannot be listed, for example because the system has too many open files or processes
 */
export function processes(): Process[] {
  const all = LISTS[source()]();
  if (!all.some(({ pid }) => pid === process.pid)) throw new Error('the list of processes is not complete');
  return all.flatMap(({ state, ...process }) => (state.startsWith('Z') ? [] : process));
}

/** Whether a process of the list, or the process it was forked from, was started with `NAME=value`; false if that is unknown. */
export function hasInEnvironment(pid: number, assignment: string): boolean {
  const environment = readProc(`${pid}/environ`);
  return environment?.split('\0').includes(assignment) ?? false;
}

/** In `/proc/PID/stat`: state, number of threads, wait status. */
const ENDING = /.*\) (\S)(?: \S+){16} (\d+)(?: \S+){31} (\d+)/s;

/** Returns the wait status of a child from `/proc`: 'none yet' while the child runs, undefined if the status cannot be read. */
export function waitStatusOf(pid: number): number | 'none yet' | undefined {
  const stat = hasOwnProc() ? readProc(`${pid}/stat`) : undefined;
  const [, state, threads, status] = ENDING.exec(stat ?? '') ?? [];
  if (status === undefined) return undefined;
  // The first thread of a process may end before the others.
  return state === 'Z' && Number(threads) <= 1 ? Number(status) : 'none yet';
}

/** In `/proc/PID/stat`: process group, foreground process group of the terminal. */
const GROUPS = /.*\) \S \d+ (\d+) \d+ -?\d+ (-?\d+)/s;

/** Whether a process is in the foreground process group of its terminal; false if that is unknown. */
export function isInForeground(pid: number): boolean {
  const [group, foreground] =
    {
      proc: () => GROUPS.exec(readProc(`${pid}/stat`) ?? '')?.slice(1),
      ps: () => ps(['-p', String(pid)], ['pgid', 'tpgid'])[0],
      nowhere: () => [],
    }[source()]() ?? [];
  return foreground !== undefined && foreground === group;
}

/** Where the processes of this PID namespace can be read. On Linux, ps(1) reads `/proc` too. */
const source = (): 'proc' | 'ps' | 'nowhere' => {
  if (hasOwnProc()) return 'proc';
  return process.platform === 'linux' ? 'nowhere' : 'ps';
};

interface Listed extends Process {
  readonly state: string;
}

const LISTS: Readonly<Record<ReturnType<typeof source>, () => Listed[]>> = {
  proc: fromProc,
  ps: fromPs,
  nowhere: () => {
    throw new Error('/proc does not show the processes of this PID namespace');
  },
};

/** In `/proc/PID/stat`: state, parent, start time. The command name before them, in parentheses, may contain anything. */
const STAT = /.*\) (\S) (\d+) (?:\S+ ){17}(\d+)/s;

function fromProc(): Listed[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    const [state = '', parent, started] = STAT.exec(readProc(`${pid}/stat`) ?? '')?.slice(1) ?? [];
    return started === undefined ? [] : { pid: Number(pid), parent: Number(parent), started: Number(started), state };
  });
}

function fromPs(): Listed[] {
  return ps(['-A'], ['pid', 'ppid', 'stat', 'lstart']).map(([pid, parent, state = '', ...started]) => ({
    pid: Number(pid),
    parent: Number(parent),
    started: Date.parse(started.join(' ')),
    state,
  }));
}

/** Runs ps(1) and returns the rows of its output, each split into words. */
function ps(selection: readonly string[], columns: readonly string[]): string[][] {
  // One -o per column: FreeBSD uses all text after "=" as the heading.
  const args = [...selection, ...columns.flatMap((column) => ['-o', `${column}=`])];
  // In another locale, Node cannot parse the start times.
  const { stdout } = spawnSync('ps', args, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } });
  const lines = (stdout ?? '').trim().split('\n');
  return lines.map((line) => line.trim().split(/\s+/));
}
