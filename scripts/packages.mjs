// No dependencies: this runs on a fresh clone.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './run.mjs';

/** Installs the packages of package-lock.json in a folder of the repository, unless exactly these are installed. */
export function ensurePackages(folder = '.') {
  if (packagesMatch(join(root, folder))) return;
  const args = ['ci', '--prefix', folder, '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  if (run('npm', args) !== 0) throw new Error('npm ci failed');
}

// npm lists the installed packages in node_modules/.package-lock.json. Unlike timestamps or hashes of our own, that file is
// correct after `npm ci`, `npm install --omit=dev`, a checkout of another commit and an interrupted installation.
function packagesMatch(folder) {
  const wanted = packagesOf(join(folder, 'package-lock.json'));
  const installed = packagesOf(join(folder, 'node_modules/.package-lock.json'));
  if (wanted === undefined || installed === undefined) return false;
  return Object.entries(wanted).every(([path, { version, integrity, optional, devOptional }]) => {
    if (path === '') return true;
    const there = installed[path];
    // Optional packages are binaries for other platforms.
    if (there === undefined) return Boolean(optional || devOptional);
    return there.version === version && there.integrity === integrity && existsSync(join(folder, path, 'package.json'));
  });
}

function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    return undefined;
  }
}
