// `npm run demo` on a fresh clone: installs missing packages, builds, and runs `etcd-v2-lock demo`. No dependencies.
import { ensurePackages } from './packages.mjs';
import { run } from './run.mjs';
import { ensurePython } from './system.mjs';

process.exitCode = demo();

function demo() {
  try {
    ensurePackages();
  } catch (error) {
    console.error(error.message);
    return 1;
  }
  tryPython();
  const demo = ['dist/cli/main.js', 'demo', ...process.argv.slice(2)];
  return run(process.execPath, ['scripts/build.mjs']) || run(process.execPath, demo);
}

/** Installs python-etcd if possible: the demo also runs without a Python contender. */
function tryPython() {
  if (process.env.ETCD_ENDPOINTS) return;
  try {
    ensurePython();
  } catch (error) {
    console.log(error.message);
  }
}
