import { spawnSync } from 'node:child_process';
import type { EtcdClientOptions } from '../../client.ts';
import { originsOf } from '../../http/checks/endpoints.ts';

/** Where a python3 that can import python-etcd may be. Debian installs python-etcd only for its own python3. */
const PYTHONS = ['python3', '/usr/bin/python3'];

/** Returns a python3 that has python-etcd; undefined if there is none. */
export const findPython = (): string | undefined =>
  PYTHONS.find((python) => spawnSync(python, ['-c', 'from etcd import Lock'], { stdio: 'ignore' }).status === 0);

/** Whether python-etcd can take part with these options. It has v2 only and no IPv6; the program below has no TLS and no users. */
export const suitsPython = (options: EtcdClientOptions): boolean =>
  (options.api ?? 'v2') === 'v2' &&
  options.lockPrefix === undefined &&
  options.srvDomain === undefined &&
  options.username === undefined &&
  originsOf(options).every((origin) => /^http:\/\/[^[]/.test(origin));

/**
 * A contender that uses python-etcd's `Lock`. It reads a `Task` and prints each `Report`, as contender-main.ts does, but writes
 * nothing. python-etcd does not renew a waiting entry, so that gets a long TTL; the holder shortens and renews it with `acquire()`.
 */
export const PYTHON_CONTENDER = `
import signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
import json, os, sys, threading, time
from urllib.parse import urlsplit
import etcd

def report(what, **more):
    print(json.dumps(dict(more, **{"is": what, "at": time.monotonic() * 1000})), flush=True)

def exit_at_end_of_input():
    sys.stdin.read()
    os._exit(1)

report("ready")
task = json.loads(sys.stdin.readline())
threading.Thread(target=exit_at_end_of_input, daemon=True).start()
server = urlsplit(task["client"]["endpoints"][0])
client = etcd.Client(host=server.hostname, port=server.port or 80)
for _ in range(task["turns"]):
    lock = etcd.Lock(client, task["name"])
    report("waits")
    lock.acquire(lock_ttl=60)
    report("holds", token=lock.lock_key.rsplit("/", 1)[-1].lstrip("0"))
    end = time.monotonic() + task["hold"]
    while time.monotonic() < end:
        lock.acquire(lock_ttl=task["ttl"])
        time.sleep(max(0, min(task["ttl"] / 3, end - time.monotonic())))
    report("releases")
    lock.release()
sys.stdout.flush()
os._exit(0)
`;
