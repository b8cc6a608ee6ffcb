import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The root of the repository: the working directory of every script, wherever it is started. */
export const root = fileURLToPath(new URL('..', import.meta.url));

/** Prints and runs a command; returns its exit code, 127 if it cannot be started, 1 if a signal ended it. */
export function run(program, args, env = {}) {
  console.log(`\n> ${[program, ...args].join(' ')}`);
  const { error, status } = spawnSync(program, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  if (error !== undefined) console.error(error.message);
  return error === undefined ? (status ?? 1) : 127;
}

/** Runs a program of an installed package. */
export function runPackage(name, args) {
  return run(`node_modules/.bin/${name}`, args);
}
