import { readFileSync } from 'node:fs';

/** Returns the text of a file below `/proc`; undefined if there is none, the process has ended, or it belongs to another user. */
export function readProc(file: string): string | undefined {
  try {
    return readFileSync(`/proc/${file}`, 'utf8');
  } catch {
    return undefined;
  }
}

/** In `/proc/self/status`: the IDs of this process in each PID namespace, from that of `/proc` to its own. Since Linux 4.1. */
const IDS = /^NSpid:\t(.*)$/m;
const ID = /^Pid:\t(.*)$/m;

/**
 * Whether `/proc` shows the PID namespace of this process. `/proc` may belong to another namespace, as after `unshare --pid
 * --fork`: its numbers are then those of other processes.
 */
export function hasOwnProc(): boolean {
  const status = readProc('self/status') ?? '';
  const [, ids] = IDS.exec(status) ?? ID.exec(status) ?? [];
  return ids === String(process.pid);
}
