// Where the programs are that the tests and the demo need. No dependencies: this runs before `npm ci`.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Every executable of that name on the PATH, first one first. */
export function onPath(name) {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, name))
    .filter(isExecutable);
}

/** The first python3 that can `import etcd`: Debian's python-etcd serves Debian's python3 only, which may not be first on the PATH. */
export function findPython() {
  const candidates = ['/usr/bin/python3', ...onPath('python3')];
  return [...new Set(candidates)].find((python) => spawnSync(python, ['-c', 'import etcd']).status === 0);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
