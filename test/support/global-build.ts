import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** What a user gets: tests that start real processes import the built package. */
export default function build(): void {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
}
