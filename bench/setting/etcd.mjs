import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onPath } from '../../scripts/find.mjs';
import { runOn } from './processors.mjs';
import { until } from './until.mjs';

const MEMORY = '/dev/shm';
const ROOM_NEEDED = 1024 ** 3;
/** Linux's magic number of tmpfs, a file system in memory. */
const TMPFS = 0x01021994;

/**
 * Starts a real etcd with an empty store on a disk, as in production, so that each write is synced.
 * @param inMemory keep the data in memory instead; returns undefined if there is too little memory
 * @param processors the processors etcd may run on; any by default
 */
export async function startEtcd({ inMemory = false, processors } = {}) {
  const [etcd] = onPath('etcd');
  if (etcd === undefined) throw new Error('etcd not found: apt-get install etcd-server');
  const directory = inMemory ? MEMORY : onDisk();
  if (inMemory && !hasRoom(directory)) return undefined;
  const dataDir = mkdtempSync(join(directory, 'etcd-v2-lock-bench-'));
  const [url, peerUrl] = (await freePorts(2)).map((port) => `http://127.0.0.1:${port}`);
  const [program, args] = runOn(processors, etcd, commandLine({ dataDir, url, peerUrl }));
  const server = spawn(program, args, {
    stdio: 'ignore',
    env: { PATH: process.env.PATH },
  });
  const removeAll = () => {
    server.kill('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 3 });
  };
  process.on('exit', removeAll);
  await until(() => answers(url, server), Boolean);
  // Afterwards, etcd itself makes no more raft writes.
  await until(() => clusterVersionAt(url), Boolean);
  return {
    url,
    pid: server.pid,
    async stop() {
      const exited = once(server, 'exit');
      server.kill('SIGKILL');
      await exited;
      removeAll();
      process.off('exit', removeAll);
    },
  };
}

/** Starts an etcd for counts, which do not depend on its speed. */
export const startEtcdForCounts = async () => (await startEtcd({ inMemory: true })) ?? startEtcd();

const commandLine = ({ dataDir, url, peerUrl }) => [
  '--enable-v2',
  '--name=bench',
  `--data-dir=${dataDir}`,
  `--listen-client-urls=${url}`,
  `--advertise-client-urls=${url}`,
  `--listen-peer-urls=${peerUrl}`,
  `--initial-advertise-peer-urls=${peerUrl}`,
  `--initial-cluster=bench=${peerUrl}`,
];

async function answers(url, server) {
  if (server.exitCode !== null) throw new Error(`etcd exited with ${server.exitCode} before it was ready`);
  try {
    const answer = await fetch(`${url}/v2/keys/_ready`, { method: 'PUT', body: new URLSearchParams({ value: '1' }) });
    await answer.text();
    return answer.ok;
  } catch {
    return false;
  }
}

/** Returns the version that the cluster has agreed on; undefined before that. */
async function clusterVersionAt(url) {
  const { etcdcluster } = await (await fetch(`${url}/version`)).json();
  return etcdcluster === 'not_decided' ? undefined : etcdcluster;
}

/** Returns the number of registered long polls of the v2 API: a state to wait for, instead of a fixed time. */
export async function pollsAt(url) {
  const { watchers } = await (await fetch(`${url}/v2/stats/store`)).json();
  return watchers;
}

/** Returns the number of open watches of the v3 API, and how many messages about watches etcd has received. */
export async function watchesAt(url) {
  const metrics = await metricsAt(url);
  return {
    open: metrics('etcd_debugging_mvcc_watcher_total'),
    messages: metrics('grpc_server_msg_received_total{grpc_method="Watch",.*}'),
  };
}

/** Returns how many raft writes etcd has carried out. */
export const raftWritesAt = async (url) => (await metricsAt(url))('etcd_server_proposals_applied_total');

/** Returns a function from the pattern of a metric's name to its value. */
async function metricsAt(url) {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return (name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
}

/** The entries in the queue of a lock. */
export async function entriesOf(url, name) {
  const { node } = await (await fetch(`${url}/v2/keys/_locks/${name}?quorum=true`)).json();
  return node?.nodes ?? [];
}

async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

function onDisk() {
  const directory = [tmpdir(), '/var/tmp', process.cwd()].find((one) => statfsSync(one).type !== TMPFS);
  if (directory === undefined) throw new Error('no directory on a disk');
  return directory;
}

function hasRoom(directory) {
  try {
    const { bavail, bsize } = statfsSync(directory);
    return bavail * bsize >= ROOM_NEEDED;
  } catch {
    return false;
  }
}
