// `npm test`: runs all checks. A check that cannot run is a failure, never silently skipped.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ensurePackages } from './packages.mjs';
import { root, run, runPackage } from './run.mjs';
import { ensureSystem } from './system.mjs';

const results = '.vitest-results.json';

const counts = [
  attempt('packages', ensurePackages),
  attempt('system', ensureSystem),
  check('lint', () => runPackage('biome', ['ci', '.'])),
  check('types', () => runPackage('tsc', ['-p', 'tsconfig.json'])),
  check('build', () => run(process.execPath, ['scripts/build.mjs'])),
  vitest(),
];

const passed = counts.reduce((sum, count) => sum + count.passed, 0);
const failed = counts.reduce((sum, count) => sum + count.failed, 0);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

// Preparations count only if they fail.
function attempt(name, prepare) {
  try {
    prepare();
    return { passed: 0, failed: 0 };
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    return { passed: 0, failed: 1 };
  }
}

function check(name, exitCodeOf) {
  const good = exitCodeOf() === 0;
  console.log(`${name}: ${good ? 'passed' : 'FAILED'}`);
  return good ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

function vitest() {
  const file = join(root, results);
  // Never count the results of an earlier run.
  rmSync(file, { force: true });
  const code = runPackage('vitest', ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${results}`]);
  const { passed, failed } = readResults(file);
  rmSync(file, { force: true });
  // A test file that cannot be loaded, an unhandled error, or no test.
  const broken = failed === 0 && (code !== 0 || passed === 0);
  return { passed, failed: broken ? 1 : failed };
}

function readResults(file) {
  try {
    const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
    const tests = testResults.flatMap((result) => result.assertionResults);
    const passed = tests.filter((test) => test.status === 'passed').length;
    const unloadable = testResults.filter(
      (result) => result.status === 'failed' && result.assertionResults.length === 0,
    );
    // Skipped and todo tests count as failed.
    return { passed, failed: tests.length - passed + unloadable.length };
  } catch (error) {
    console.error(`no results from vitest: ${error.message}`);
    return { passed: 0, failed: 1 };
  }
}
