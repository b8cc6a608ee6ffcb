import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onPath } from '../../scripts/find.mjs';
import { JsonProcess } from '../setting/json-process.mjs';

const MODULE = fileURLToPath(new URL('go', import.meta.url));
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/etcd-v2-lock-bench', import.meta.url));

let program;

/** Builds the program with Go's client, once. Returns whether that was possible: without Go, this contestant does not take part. */
export function hasGo() {
  const [go] = onPath('go');
  if (go === undefined) return false;
  if (program) return true;
  mkdirSync(CACHE, { recursive: true });
  const built = join(CACHE, 'go-peer');
  const args = ['build', '-trimpath', '-buildvcs=false', '-o', built, '.'];
  const { status } = spawnSync(go, args, { cwd: MODULE, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) return false;
  program = built;
  return true;
}

/** Starts a process with Go's client, if {@link hasGo}. */
export const startGo = (url) => new JsonProcess(program, [url]);

/** Go's `concurrency.Mutex`: one session, whose lease all its locks share. */
export function goMutex(url) {
  const peer = startGo(url);
  const name = `hand-over-${randomUUID()}`;
  return {
    id: 'go',
    title: "Go's `concurrency.Mutex`",
    waitsBy: 'v3',
    /** Timed in that process. */
    cycles: (lock, times) => peer.ask('cycles', { name: lock, times }),
    onceEach: (names, times) => peer.ask('once_each', { name: names, times }),
    hold: () => peer.ask('hold', { name }),
    queue: () => peer.ask('queue', { name }),
    passOn: () => peer.ask('pass_on'),
    giveBack: () => peer.ask('give_back'),
    stop: () => peer.stop(),
  };
}

/** Go's `concurrency.Mutex` with a session for each cycle, as `etcdctl lock` and short-lived processes have. */
export function goMutexes(url) {
  const peer = startGo(url);
  return {
    id: 'goSessions',
    title: "Go's `concurrency.Mutex`, a session per cycle",
    /** Timed in that process. */
    cycles: (lock, times) => peer.ask('cycles_of_sessions', { name: lock, times }),
    stop: () => peer.stop(),
  };
}
