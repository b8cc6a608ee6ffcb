import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { onPath } from '../../scripts/find.mjs';

/**
 * Restricts this process and its children to half of the processors and leaves the others to etcd, as if on two machines.
 * Without this, the scheduler decides in each round whether etcd and its client share one processor.
 * @returns both lists, and that of all processors, as `taskset` accepts them; undefined with one processor or without `taskset`
 */
export function keepApart() {
  const allowed = allowedProcessors();
  if (onPath('taskset').length === 0 || allowed.length < 2) return undefined;
  const half = allowed.length >> 1;
  const [servers, clients, all] = [allowed.slice(0, half), allowed.slice(half), allowed].map((some) => some.join(','));
  keepTo(clients, process.pid);
  return { servers, clients, all };
}

/** Restricts a running process with all its threads to these processors. */
export function keepTo(processors, pid) {
  const { status, stderr } = spawnSync('taskset', ['-acp', processors, String(pid)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`taskset: ${stderr}`);
}

/** Returns program and arguments of a command that runs the program on these processors only. */
export const runOn = (processors, program, args) =>
  processors === undefined ? [program, args] : ['taskset', ['-c', processors, program, ...args]];

/** Returns the processors of this process on Linux, which has a list such as `0-3,8`; [0] elsewhere. */
function allowedProcessors() {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(statusOfThis())?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

function statusOfThis() {
  try {
    return readFileSync('/proc/self/status', 'utf8');
  } catch {
    return '';
  }
}
