import { readdirSync, readFileSync } from 'node:fs';
import { until } from './until.ts';

export interface ProcessStat {
  /** `T` when it is stopped, `Z` when it has ended and nobody has asked for its code yet. */
  readonly state: string;
  readonly parent: number;
  readonly group: number;
}

/** What Linux tells of a process; undefined when it is gone. */
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

/** Waits until each of them is stopped, or none is. */
export async function untilStopped(pids: readonly number[], stopped = true): Promise<void> {
  await until(
    () => pids.map((pid) => statOf(pid)?.state === 'T'),
    (states) => states.every((state) => state === stopped),
  );
}

/** Processes of that group that run or are stopped. */
export const groupMembers = (group: number): number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => statOf(pid)?.group === group && isThere(pid));
