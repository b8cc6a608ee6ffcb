// What `npm test` and `npm run peers` have in common: checks are counted, and a check that cannot run is a failure.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { root, runPackage } from './run.mjs';

const results = '.vitest-results.json';

/** Runs a preparation, which counts only if it fails. */
export function attempt(name, prepare) {
  try {
    prepare();
    return { passed: 0, failed: 0 };
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    return { passed: 0, failed: 1 };
  }
}

/** Runs a check that is a single program. */
export function check(name, exitCodeOf) {
  const good = exitCodeOf() === 0;
  console.log(`${name}: ${good ? 'passed' : 'FAILED'}`);
  return good ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/** Runs Vitest on one or more of its projects, and counts the tests. */
export function vitest(project) {
  const file = join(root, results);
  // Never count the results of an earlier run.
  rmSync(file, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${results}`];
  const code = runPackage('vitest', ['run', `--project=${project}`, ...reporters]);
  const { passed, failed } = readResults(file);
  rmSync(file, { force: true });
  // A test file that cannot be loaded, an unhandled error, or no test.
  const broken = failed === 0 && (code !== 0 || passed === 0);
  return { passed, failed: broken ? 1 : failed };
}

/** Prints the sums of all counts and sets the exit code. */
export function conclude(counts) {
  const passed = counts.reduce((sum, count) => sum + count.passed, 0);
  const failed = counts.reduce((sum, count) => sum + count.failed, 0);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
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
