// Installs the programs that the tests start.
import { spawnSync } from 'node:child_process';
import { findPython, onPath } from './find.mjs';
import { run } from './run.mjs';

const PYTHON = {
  what: 'a python3 that can `import etcd`',
  from: 'python3-etcd',
  there: () => findPython() !== undefined,
};
const NEEDS = [
  { what: 'etcd', from: 'etcd-server', there: () => onPath('etcd').length > 0 },
  { what: 'etcdctl', from: 'etcd-client', there: () => onPath('etcdctl').length > 0 },
  { what: 'curl', from: 'curl', there: () => onPath('curl').length > 0 },
  PYTHON,
];
/** For the tests of the completion scripts, the manual page, the units and the alerts. */
const RARE = [
  ...['zsh', 'fish'].map((shell) => ({ what: shell, from: shell, there: () => onPath(shell).length > 0 })),
  { what: 'man', from: 'man-db', there: () => onPath('man').length > 0 },
  { what: 'systemd-analyze', from: 'systemd', there: () => onPath('systemd-analyze').length > 0 },
  { what: 'promtool', from: 'prometheus', there: () => onPath('promtool').length > 0 },
  { what: 'tmux', from: 'tmux', there: () => onPath('tmux').length > 0 },
];

const BROWSER = { what: 'chromium', from: 'chromium', there: () => onPath('chromium').length > 0 };

/** Installs missing programs with apt if it has the permission; otherwise throws an error that says what to install. */
export function ensureSystem() {
  ensure(NEEDS);
  const version = /etcd Version: (\d+)\.(\d+)/.exec(
    spawnSync('etcd', ['--version'], { encoding: 'utf8' }).stdout ?? '',
  );
  if (version && (Number(version[1]) > 3 || Number(version[2]) > 5)) {
    throw new Error(`etcd on the PATH is ${version[1]}.${version[2]}, which has no v2 API. Install etcd 3.4 or 3.5.`);
  }
}

/** The same for what few tests need. */
export function ensureRare() {
  ensure(RARE);
}

/** The same for the browser that opens the documentation site. */
export function ensureBrowser() {
  ensure([BROWSER]);
}

/** The same for python-etcd only. */
export function ensurePython() {
  ensure([PYTHON]);
}

function ensure(needs) {
  const missing = () => needs.filter((need) => !need.there());
  const wanted = missing();
  if (wanted.length === 0) return;
  install(wanted.map((need) => need.from));
  const still = missing();
  if (still.length === 0) return;
  const names = still.map((need) => need.what).join(', ');
  throw new Error(`${names} not found: apt-get install ${still.map((need) => need.from).join(' ')}`);
}

function install(packages) {
  const asRoot = rootPrefix();
  if (asRoot === undefined || onPath('apt-get').length === 0) return;
  // Debian may start an etcd on port 2379, and a Prometheus on 9090; the tests use other ports.
  const apt = (...args) => {
    const [program, ...rest] = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args];
    return run(program, rest);
  };
  apt('update');
  apt('install', '-y', '-o', 'DPkg::Lock::Timeout=120', ...packages);
}

function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  return spawnSync('sudo', ['-n', 'true']).status === 0 ? ['sudo', '-n'] : undefined;
}
