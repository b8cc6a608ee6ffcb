import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { findPython } from '../find.mjs';

const harness = fileURLToPath(new URL('../../compat/harness.py', import.meta.url));

/** Starts a process with as many locks of python-etcd as wanted. Each lock has its own `etcd.Client`. */
export function startPython(url) {
  const { hostname, port } = new URL(url);
  const python = findPython();
  const child = spawn(python, [harness, hostname, port], { stdio: ['pipe', 'pipe', 'ignore'] });
  const closed = once(child, 'close');
  const answers = new Map();
  let last = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, ok, result, error } = JSON.parse(line);
    answers.get(id)?.(ok ? result : error);
  });

  // Resolves to the error if python-etcd raises one: some scenarios expect that, and only the requests are recorded.
  const call = (op, command) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      answers.set(id, resolve);
      closed.then(() => reject(new Error(`python-etcd exited during ${op}`)));
      child.stdin.write(`${JSON.stringify({ id, op, ...command })}\n`);
    });

  /** Creates an `etcd.Lock`. */
  const lock = async (name, client = {}) => {
    const handle = String(last + 1);
    await call('lock', { lock: handle, name, client });
    const on = (op, args = {}) => call(op, { lock: handle, args });
    return {
      acquire: (ttl, args = {}) => on('acquire', { lock_ttl: ttl, ...args }),
      isAcquired: () => on('isAcquired'),
      release: () => on('release'),
      setUuid: (uuid) => on('setUuid', { uuid }),
      uuid: async () => (await on('state')).uuid,
    };
  };

  const stop = async () => {
    child.stdin.end();
    await closed;
  };
  return { lock, version: () => versionOf(python), stop };
}

function versionOf(python) {
  const script = 'from importlib.metadata import version; print(version("python-etcd"))';
  return spawnSync(python, ['-c', script], { encoding: 'utf8' }).stdout.trim();
}
