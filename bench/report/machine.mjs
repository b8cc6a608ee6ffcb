import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import os from 'node:os';
import { findPython, onPath } from '../../scripts/find.mjs';

const require = createRequire(import.meta.url);

/** Returns lines that describe the machine and the versions of the measured programs. */
export async function machine(etcd, apart) {
  const { etcdserver } = await (await fetch(`${etcd.url}/version`)).json();
  const [cpu] = os.cpus();
  const memory = Math.round(os.totalmem() / 1024 ** 3);
  return [
    `${new Date().toISOString().slice(0, 10)}, ${os.cpus().length} × ${cpu.model.trim()}, ${memory} GiB, ${os.type()} ${os.release()}; load ${os.loadavg()[0].toFixed(1)} at the start`,
    apart
      ? `etcd on processor ${apart.servers}, its clients on processor ${apart.clients}; 8 contenders and their etcd on ${apart.all}`
      : 'etcd and its clients on the same processors',
    `Node ${process.versions.node}, undici ${versionOf('undici')}, etcd ${etcdserver} with its data on disk`,
    `python-etcd ${pythonEtcdVersion()}, npm etcd3 ${versionOf('etcd3')}, ${etcdctlVersion()}`,
  ];
}

const versionOf = (name) => require(`${name}/package.json`).version;

function pythonEtcdVersion() {
  const ask =
    "from importlib.metadata import version; import sys; print(version('python-etcd'), 'on Python', sys.version.split()[0])";
  return spawnSync(findPython(), ['-c', ask], { encoding: 'utf8' }).stdout.trim();
}

const etcdctlVersion = () => spawnSync(onPath('etcdctl')[0], ['version'], { encoding: 'utf8' }).stdout.split('\n')[0];
