// Shared by the commands that run tests: checks are counted, and a check that cannot run is a failure, never silently skipped.
// A count is the number of checks that passed, and the names of those that failed.
import { readFileSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root, runPackage } from './run.mjs';

const results = 'node_modules/.vitest-results.json';
/** Number of the slowest files that are shown. */
const MOST_SHOWN = 20;

/** Runs a preparation, which counts only if it fails. */
export function attempt(name, prepare) {
  try {
    prepare();
    return { passed: 0, failed: [] };
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    return { passed: 0, failed: [name] };
  }
}

/** Runs a check that is a single program. */
export function check(name, exitCodeOf) {
  const good = exitCodeOf() === 0;
  console.log(`${name}: ${good ? 'passed' : 'FAILED'}`);
  return good ? { passed: 1, failed: [] } : { passed: 0, failed: [name] };
}

/** The checks that need no program but the packages. */
export const checkSource = () => [
  check('lint', () => runPackage('biome', ['ci', '.'])),
  check('types', () => runPackage('tsc', ['-p', 'tsconfig.json'])),
];

/** Runs Vitest on these of its projects, counts the tests, and prints the slowest files. */
export function vitest(...projects) {
  const file = join(root, results);
  // Never count the results of an earlier run.
  rmSync(file, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${results}`];
  const code = runPackage('vitest', ['run', ...projects.map((project) => `--project=${project}`), ...reporters]);
  const { passed, failed, seconds } = readResults(file);
  printSlowest(seconds);
  rmSync(file, { force: true });
  // A test file that cannot be loaded, an unhandled error, or no test.
  const broken = failed.length === 0 && (code !== 0 || passed === 0);
  return { passed, failed: broken ? ['vitest'] : failed };
}

/** Prints what failed and the sums of all counts, and sets the exit code. */
export function conclude(counts) {
  const passed = counts.reduce((sum, count) => sum + count.passed, 0);
  const failed = counts.flatMap((count) => count.failed);
  for (const name of failed) console.log(`failed: ${name}`);
  console.log(`${passed} passed, ${failed.length} failed`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

function readResults(file) {
  try {
    const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
    let passed = 0;
    const failed = [];
    const seconds = [];
    for (const { name, status, startTime, endTime, assertionResults } of testResults) {
      const path = relative(root, name);
      seconds.push({ path, took: (endTime - startTime) / 1000 });
      // Skipped and todo tests count as failed.
      const bad = assertionResults.filter((test) => test.status !== 'passed');
      passed += assertionResults.length - bad.length;
      failed.push(...bad.map((test) => `${path}: ${test.fullName}`));
      // A file that could not be loaded has no tests.
      if (status === 'failed' && assertionResults.length === 0) failed.push(path);
    }
    return { passed, failed, seconds };
  } catch (error) {
    console.error(`no results from vitest: ${error.message}`);
    return { passed: 0, failed: ['vitest'], seconds: [] };
  }
}

/** Prints where the time went, without imports and `beforeAll`. A file is listed once per project. */
function printSlowest(files) {
  const slowest = files.toSorted((one, other) => other.took - one.took).slice(0, MOST_SHOWN);
  console.log(`the ${slowest.length} slowest test files, in seconds from the first test to the last:`);
  for (const { path, took } of slowest) console.log(`${took.toFixed(1).padStart(7)}  ${path}`);
}
