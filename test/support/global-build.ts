import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Builds the package: tests that start real processes import the build, as a user does. */
export default function build(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'inherit' });
}
