import { fileURLToPath } from 'node:url';
import { JsonProcess } from '../setting/json-process.mjs';
import { startPython } from './python.mjs';

const LOCKS = fileURLToPath(new URL('queue-of-locks.mjs', import.meta.url));

/** Starts a process with a queue of `Lock`s, each with its own entry. */
export function queueOfLocks(url) {
  const locks = new JsonProcess(process.execPath, [LOCKS, url]);
  return queueIn(locks, { id: 'lock', title: 'this package, `Lock`' });
}

/** The same with python-etcd's locks: one thread and one connection each. */
export const queueOfPython = (url) => queueIn(startPython(url), { id: 'python', title: 'python-etcd `Lock`' });

/** Drains are timed in that process. */
function queueIn(crowd, named) {
  let name;
  return {
    ...named,
    hold(lock) {
      name = lock;
      return crowd.ask('hold', { name });
    },
    queue: () => crowd.ask('queue', { name }),
    drain: () => crowd.ask('drain'),
    stop: () => crowd.stop(),
  };
}
