import { fileURLToPath } from 'node:url';
import { JsonProcess } from '../setting/json-process.mjs';
import { startGo } from './go.mjs';
import { startPython } from './python.mjs';

const OURS = fileURLToPath(new URL('queue-of-ours.mjs', import.meta.url));

const TITLES = { lock: 'this package, `Lock`', manager: 'this package, `LockManager`' };

/**
 * Starts a process with a queue of this package's waiters, each with its own entry.
 * @param face 'lock' or 'manager'
 */
export function queueOfOurs(face, url, api = 'v2') {
  const waiters = new JsonProcess(process.execPath, [OURS, url, face, api]);
  return queueIn(waiters, { id: face, title: TITLES[face] });
}

/** The same with Go's mutexes: one session and one goroutine each, on ten clients. */
export const queueOfGo = (url) => queueIn(startGo(url), { id: 'go', title: "Go's `concurrency.Mutex`" });

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
