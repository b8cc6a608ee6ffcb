import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The repository's root: every script works from there, wherever it was called. */
export const root = fileURLToPath(new URL('..', import.meta.url));

/** Runs a program in plain sight and tells its exit code; 127 where it could not start, 1 where a signal ended it. */
export function run(program, args, env = {}) {
  console.log(`\n> ${[program, ...args].join(' ')}`);
  const { error, status } = spawnSync(program, args, { cwd: root, stdio: 'inherit', env: { ...process.env, ...env } });
  if (error !== undefined) console.error(error.message);
  return error === undefined ? (status ?? 1) : 127;
}

/** A program that a package of ours brings along. */
export function runPackage(name, args) {
  return run(`node_modules/.bin/${name}`, args);
}
