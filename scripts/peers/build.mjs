// Builds what the tests beside peers start: servers and clients that neither npm nor apt has.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from '../run.mjs';
import { cache } from './cache.mjs';

const PEERS = 'compat/peers';
const GO = ['3.5', '3.6'].map((version) => ({
  name: `etcd-${version}`,
  sources: [`go/etcd-${version}`, 'go/mutex'],
  build: (to) => {
    // Both in the module of this version, so that the client is of the same version as the server.
    goBuild(`go/etcd-${version}`, '.', join(to, 'etcd'));
    goBuild(`go/etcd-${version}`, '../mutex/main.go', join(to, 'mutex'));
    // Only that of 3.5 checks whether 3.6 can be started.
    if (version === '3.5') goBuild(`go/etcd-${version}`, 'go.etcd.io/etcd/etcdutl/v3', join(to, 'etcdutl'));
  },
}));
const JETCD = {
  name: 'jetcd',
  sources: ['java'],
  build: (to) => must('mvn', ['-q', '-B', '-f', `${PEERS}/java/pom.xml`, `-Doutput=${to}`, 'package']),
};
const PYTHON = ['aetcd', 'etcd3gw', 'kubernetes-validate'].map((name) => ({
  name,
  sources: [`${name}/requirements.txt`],
  build: (to) => {
    must('python3', ['-m', 'venv', to]);
    const requirements = `${PEERS}/${name}/requirements.txt`;
    must(join(to, 'bin/pip'), ['install', '-q', '--disable-pip-version-check', '-r', requirements]);
  },
}));

/** Builds each peer, unless it is built from the same sources already. @throws {Error} if a build fails */
export function buildPeers() {
  for (const peer of [JETCD, ...PYTHON, ...GO]) buildOnce(peer);
}

function buildOnce({ name, sources, build }) {
  const to = join(cache, name);
  const stamp = join(to, '.sources');
  const hash = hashOf(sources.flatMap((source) => filesOf(join(PEERS, source))));
  if (contentOf(stamp) === hash) return;
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  build(to);
  // Last: a build that was interrupted begins anew.
  writeFileSync(stamp, hash);
}

function goBuild(module, what, program) {
  must('go', ['build', '-C', join(PEERS, module), '-trimpath', '-buildvcs=false', '-o', program, what]);
}

function must(program, args) {
  if (run(program, args) !== 0) throw new Error(`${program} failed`);
}

function hashOf(files) {
  const hash = createHash('sha256');
  for (const file of files)
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0');
  return hash.digest('hex');
}

function filesOf(path) {
  if (statSync(join(root, path)).isFile()) return [path];
  const below = readdirSync(join(root, path), { recursive: true }).map((name) => join(path, name));
  return below.filter((name) => statSync(join(root, name)).isFile()).sort();
}

function contentOf(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
