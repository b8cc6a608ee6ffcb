import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Set once this process has built the package. Each Vitest project has its own copy of this module. */
const BUILT = Symbol.for('etcd-v2-lock.test.built');
const registry = globalThis as { [BUILT]?: true };

/** Builds the package: tests that start real processes import the build, as a user does. */
export default function build(): void {
  if (registry[BUILT]) return;
  const root = fileURLToPath(new URL('../..', import.meta.url));
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' });
  registry[BUILT] = true;
}
