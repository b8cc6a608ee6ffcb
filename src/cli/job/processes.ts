import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';

export interface Process {
  readonly pid: number;
  readonly parent: number;
  /** When it was started, in whatever unit: tells it from a later one that got its number, and children from their elders. */
  readonly started: number;
}

/** All processes that run or are stopped. */
export function processes(): Process[] {
  const all = existsSync('/proc/self/stat') ? fromProc() : fromPs();
  return all.flatMap(({ state, ...process }) => (state.startsWith('Z') ? [] : process));
}

/** Whether a process was started with this in its environment, or forked from one that was; false where that cannot be known. */
export function hasInEnvironment(pid: number, variable: string): boolean {
  const environment = readProc(`${pid}/environ`);
  return environment?.split('\0').includes(variable) ?? false;
}

/** State, number of threads and exit code, the last field of these but one. */
const ENDING = /.*\) (\S)(?: \S+){16} (\d+)(?: \S+){31} (\d+)/s;

/** The wait status that Linux keeps of a child that has ended; undefined where it cannot be seen. */
export function waitStatusOf(pid: number): number | 'none yet' | undefined {
  const stat = readProc(`${pid}/stat`);
  const [, state, threads, status] = ENDING.exec(stat ?? '') ?? [];
  if (status === undefined) return undefined;
  // The first thread may end before the others.
  return state === 'Z' && Number(threads) <= 1 ? Number(status) : 'none yet';
}

interface Listed extends Process {
  readonly state: string;
}

/** State, parent and time of the start. The command before them, in brackets, may contain anything. */
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

/** Runs ps(1); the rows of its output, each as words. */
function ps(selection: readonly string[], columns: readonly string[]): string[][] {
  // One -o per column: FreeBSD uses all text after "=" as the heading.
  const args = [...selection, ...columns.flatMap((column) => ['-o', `${column}=`])];
  const { stdout } = spawnSync('ps', args, { encoding: 'utf8' });
  const lines = (stdout ?? '').trim().split('\n');
  return lines.map((line) => line.trim().split(/\s+/));
}

/** undefined when the process is gone, or is not ours to look at. */
function readProc(file: string): string | undefined {
  try {
    return readFileSync(`/proc/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}
