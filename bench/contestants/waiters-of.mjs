import { fileURLToPath } from 'node:url';
import { JsonProcess } from '../setting/json-process.mjs';
import { startPython } from './python.mjs';

const WAITERS = fileURLToPath(new URL('waiters.mjs', import.meta.url));
const TITLES = { manager: 'this package, `LockManager`', lock: 'this package, `Lock`' };

/** Starts a process for waiters of this package. */
export function waitersOfOurs(face, url) {
  const crowd = new JsonProcess(process.execPath, ['--expose-gc', WAITERS, url]);
  return {
    title: TITLES[face],
    settle: () => crowd.ask('settle'),
    queue: (name, count) => crowd.ask(face, { name, count }),
    usage: () => crowd.ask('usage'),
    async served() {
      const { inOrder, ...others } = await crowd.ask('served');
      // Concurrent appends may arrive in any order.
      return face === 'manager' ? { inOrder, ...others } : others;
    },
    stop: () => crowd.stop(),
  };
}

/** Starts a process for python-etcd's waiters. Its heap cannot be measured apart from the rest of its memory. */
export function waitersOfPython(url) {
  const crowd = startPython(url);
  let before;
  const since = async () => {
    const now = await crowd.ask('usage');
    const used = { resident: now.resident - before.resident, cpu: now.cpu - before.cpu };
    before = now;
    return used;
  };
  return {
    title: 'python-etcd `Lock`',
    settle: async () => {
      before = await crowd.ask('usage');
    },
    async queue(name, count) {
      await crowd.ask('expect');
      for (let i = 0; i < count; i += 1) await crowd.ask('queue', { name });
    },
    usage: since,
    async served() {
      const served = await crowd.ask('join');
      return { served, ...(await since()) };
    },
    stop: () => crowd.stop(),
  };
}
