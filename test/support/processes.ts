import { readdirSync, readFileSync } from 'node:fs';
import { until } from './until.ts';

export interface ProcessStat {
  /** `T` if the process is stopped, `Z` if it has ended and its parent has not read its exit code yet. */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
}

/** Reads /proc/PID/stat; undefined if the process does not exist. */
export function statOf(pid: number): ProcessStat | undefined {
  try {
    const [, state = '', parent, group] =
      /.*\) (\S) (\d+) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return { state, parent: Number(parent), group: Number(group) };
  } catch {
    return undefined;
  }
}

/** Whether a process runs or is stopped. */
export function isThere(pid: number): boolean {
  const { state = 'Z' } = statOf(pid) ?? {};
  return state !== 'Z';
}

export const untilGone = (pid: number): Promise<boolean> =>
  until(
    () => isThere(pid),
    (there) => !there,
  );

/** Waits until all of them are stopped, or with `stopped = false`, until none is. */
export async function untilStopped(pids: readonly number[], stopped = true): Promise<void> {
  await until(
    () => pids.map((pid) => statOf(pid)?.state === 'T'),
    (states) => states.every((state) => state === stopped),
  );
}

/** The processes that a process has started, and that run or are stopped. */
export const childrenOf = (parent: number): number[] => pidsWhere((stat) => stat.parent === parent);

/** The processes of a group that run or are stopped. */
export const groupMembers = (group: number): number[] => pidsWhere((stat) => stat.group === group);

const pidsWhere = (accept: (stat: ProcessStat) => boolean): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const stat = statOf(pid);
      return stat !== undefined && stat.state !== 'Z' && accept(stat);
    });
