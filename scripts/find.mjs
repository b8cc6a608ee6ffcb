// Finds the programs that the tests and the demo need. No dependencies: this runs before `npm ci`.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Returns all executables of that name on the PATH, in its order. */
export function onPath(name) {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, name))
    .filter(isExecutable);
}

/** Returns the first python3 that can `import etcd`. Debian installs python-etcd only for its own python3. */
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
