// `npm run demo` on a bare clone: installs what is missing, builds, and runs the demo. No dependencies.
import { ensurePackages } from './packages.mjs';
import { run, runPackage } from './run.mjs';
import { ensurePython } from './system.mjs';

process.exitCode = demo();

function demo() {
  try {
    ensurePackages();
  } catch (error) {
    console.error(error.message);
    return 1;
  }
  invitePython();
  return runPackage('tsc', ['-p', 'tsconfig.build.json']) || run(process.execPath, ['scripts/demo/main.mjs']);
}

/** python-etcd only makes the queue more mixed. */
function invitePython() {
  if (process.env.ETCD_ENDPOINTS) return;
  try {
    ensurePython();
  } catch (error) {
    console.log(error.message);
  }
}
