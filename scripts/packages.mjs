// Runs on a bare clone, so it has no dependencies.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './run.mjs';

/** Installs the packages of package-lock.json unless exactly these are there already. */
export function ensurePackages() {
  if (packagesMatch()) return;
  if (run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund']) !== 0) throw new Error('npm ci failed');
}

// npm writes what it has installed into node_modules/.package-lock.json; unlike times and hashes of our own this is
// right after `npm ci`, `npm install --omit=dev`, a checkout of another commit and an install that was interrupted.
function packagesMatch() {
  const wanted = packagesOf('package-lock.json');
  const installed = packagesOf('node_modules/.package-lock.json');
  if (wanted === undefined || installed === undefined) return false;
  return Object.entries(wanted).every(([path, { version, integrity, optional, devOptional }]) => {
    if (path === '') return true;
    const there = installed[path];
    // Optional ones are binaries for other platforms.
    if (there === undefined) return Boolean(optional || devOptional);
    return there.version === version && there.integrity === integrity && existsSync(join(root, path, 'package.json'));
  });
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(join(root, file), 'utf8')).packages;
  } catch {
    return undefined;
  }
}
