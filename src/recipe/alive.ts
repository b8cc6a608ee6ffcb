const ALIVE = Symbol.for('etcd-v2-lock.alive');
const registry = globalThis as { [ALIVE]?: Set<string> };
registry[ALIVE] ??= new Set();

/**
 * What this process's own entries carry, in any queue: none of those was left behind by a process that is gone. One for all
 * copies of this package that npm may have installed side by side.
 */
export const alive = registry[ALIVE];
