import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { onPath } from '../../scripts/find.mjs';

/**
 * Leaves half of the processors to etcd and keeps this process, with all it starts, to the others, as if on two machines:
 * else it is the scheduler who decides in each round whether etcd and its client take turns on one processor or not.
 * @returns both lists, and that of all, as `taskset` takes them; undefined where there is one processor only, or no `taskset`
 */
export function keepApart() {
  const allowed = allowedProcessors();
  if (onPath('taskset').length === 0 || allowed.length < 2) return undefined;
  const half = allowed.length >> 1;
  const [servers, clients, all] = [allowed.slice(0, half), allowed.slice(half), allowed].map((some) => some.join(','));
  keepTo(clients, process.pid);
  return { servers, clients, all };
}

/** Keeps a process that runs already, with all its threads, to these processors. */
export function keepTo(processors, pid) {
  const { status, stderr } = spawnSync('taskset', ['-acp', processors, String(pid)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`taskset: ${stderr}`);
}

/** Program and arguments, such that it runs on these processors only. */
export const runOn = (processors, program, args) =>
  processors === undefined ? [program, args] : ['taskset', ['-c', processors, program, ...args]];

/** Linux tells a list such as `0-3,8`; nothing is known elsewhere. */
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
