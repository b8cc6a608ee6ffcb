// `npm run peers`: tests the lock on etcd v3 with servers and clients that need Go, Java or pip, and in a browser the page of `ui` and the
// documentation site.
import { attempt, check, conclude, vitest } from './checks.mjs';
import { ensurePackages } from './packages.mjs';
import { buildPeers } from './peers/build.mjs';
import { ensureBuilders } from './peers/needs.mjs';
import { run, runPackage } from './run.mjs';
import { ensureBrowser, ensureSystem } from './system.mjs';

const counts = [];
const prepared = [
  ['npm run peers', ensureBuilders],
  ['packages', ensurePackages],
  ['system', ensureSystem],
  ['build', buildPeers],
  ['browser', ensureBrowser],
  ['packages of the tests in a browser', () => ensurePackages('test/browser')],
  ['site', buildSite],
].every(([name, prepare]) => {
  const count = attempt(name, prepare);
  counts.push(count);
  return count.failed.length === 0;
});
if (prepared) {
  counts.push(
    check('types of the tests in a browser', () => runPackage('tsc', ['-p', 'test/browser'])),
    check('types of the tests of the site', () => runPackage('tsc', ['-p', 'scripts/site'])),
    vitest('peers*'),
  );
}
conclude(counts);

function buildSite() {
  if (run(process.execPath, ['scripts/site/main.mjs']) !== 0) throw new Error('the site cannot be built');
}
