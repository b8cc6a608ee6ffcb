import { fileURLToPath } from 'node:url';
import { JsonProcess } from '../setting/json-process.mjs';
import { startPython } from './python.mjs';

const LOCKS = fileURLToPath(new URL('queue-of-locks.mjs', import.meta.url));

/** A queue of `Lock`s in which everyone has an entry, in a process of its own. */
export function queueOfLocks(url) {
  const locks = new JsonProcess(process.execPath, [LOCKS, url]);
  return queueIn(locks, { id: 'lock', title: 'this package, `Lock`' });
}

/** The same of python-etcd's: a thread and a connection for each. */
export const queueOfPython = (url) => queueIn(startPython(url), { id: 'python', title: 'python-etcd `Lock`' });

/** Timed over there. */
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
