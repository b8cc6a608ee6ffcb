// `npm run repeat -- FILE N [PROJECT]`: finds flaky tests by running a test file N times on a busy machine. Without PROJECT, each
// round runs the file in every project that includes it, except on the versions of etcd that `npm run peers` builds.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cpus } from 'node:os';
import { resolve } from 'node:path';
import { root } from './run.mjs';

const [file, times, project = '!peers-*', ...rest] = process.argv.slice(2);
const problem = misuse();
if (problem !== undefined) {
  console.error(`${problem}\nusage: npm run repeat -- FILE N [PROJECT]`);
  process.exit(2);
}

// Exits when this process has been killed.
const spin = `while (process.ppid === ${process.pid});`;
const busy = cpus().map(() => spawn(process.execPath, ['-e', spin], { stdio: 'ignore' }));
process.on('exit', () => {
  for (const child of busy) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

for (let round = 1; round <= Number(times); round++) {
  const start = performance.now();
  const { status, stdout, stderr } = vitest();
  if (status !== 0) {
    console.error(`${stdout}${stderr}\n${file}: failed in round ${round} of ${times}`);
    process.exit(1);
  }
  console.log(`${round} of ${times}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
}
console.log(`${file}: ${times} of ${times} passed`);
process.exit(0);

function misuse() {
  if (file === undefined || times === undefined || rest.length > 0) return 'two or three arguments are needed';
  if (!existsSync(resolve(root, file))) return `no such test file: ${file}`;
  if (!/^[1-9]\d*$/.test(times)) return `N must be an integer >= 1, got ${times}`;
  return undefined;
}

function vitest() {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 };
  return spawnSync('node_modules/.bin/vitest', ['run', `--project=${project}`, file], options);
}
