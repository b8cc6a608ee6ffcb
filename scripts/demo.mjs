// `npm run demo` on a bare clone: installs what is missing, builds, and runs the demo. No dependencies.
import { onPath } from './find.mjs';
import { ensurePackages } from './packages.mjs';
import { run, runPackage } from './run.mjs';
import { ensureSystem } from './system.mjs';

process.exitCode = demo();

function demo() {
  try {
    ensurePackages();
    ensureEtcd();
  } catch (error) {
    console.error(error.message);
    return 1;
  }
  return runPackage('tsc', ['-p', 'tsconfig.build.json']) || run(process.execPath, ['scripts/demo/main.mjs']);
}

/** A local etcd is needed where ETCD_ENDPOINTS names none; python-etcd only makes the queue more mixed. */
function ensureEtcd() {
  if (process.env.ETCD_ENDPOINTS) return;
  try {
    ensureSystem();
  } catch (error) {
    if (onPath('etcd').length === 0) throw new Error(`${error.message}, or set ETCD_ENDPOINTS to a cluster in v2 mode`);
    console.log(error.message);
  }
}
