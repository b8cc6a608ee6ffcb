import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { findPython } from '../../scripts/find.mjs';
import { JsonProcess } from '../setting/json-process.mjs';
import { runOn } from '../setting/processors.mjs';

const PEER = fileURLToPath(new URL('peer.py', import.meta.url));

/**
 * Starts a process with python-etcd.
 * @param processors the processors it may run on; by default those of this process
 */
export function startPython(url, processors) {
  const python = findPython();
  if (python === undefined) throw new Error('no python3 can import etcd: apt-get install python3-etcd');
  const { hostname, port } = new URL(url);
  return new JsonProcess(...runOn(processors, python, [PEER, hostname, port]));
}

export function pythonEtcd(url) {
  const peer = startPython(url);
  const name = `hand-over-${randomUUID()}`;
  return {
    id: 'python',
    title: 'python-etcd `Lock`',
    /** Timed in that process. */
    cycles: (lock, times) => peer.ask('cycles', { name: lock, times }),
    /** Resolves to the milliseconds per cycle, and those of processor time, if that many threads use a lock each. */
    together: (lock, times, locks) => peer.ask('together', { name: lock, times, locks }),
    hold: () => peer.ask('hold', { name }),
    queue: () => peer.ask('queue', { name }),
    passOn: () => peer.ask('pass_on'),
    giveBack: () => peer.ask('give_back'),
    stop: () => peer.stop(),
  };
}
