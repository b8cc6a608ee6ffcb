// `npm run faults -- --api v3 --repeat 20`: repeats every named fault on a real cluster until one fails, then prints recovery times.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './run.mjs';

const USAGE = 'usage: npm run faults -- [--api v2|v3|bridge|moving] [--repeat N]';

process.exitCode = faults();

function faults() {
  let values;
  try {
    ({ values } = parseArgs({ options: { api: { type: 'string' }, repeat: { type: 'string' } } }));
  } catch (error) {
    return misuse(error.message);
  }
  const { api = 'v2', repeat = '1' } = values;
  if (!['v2', 'v3', 'bridge', 'moving'].includes(api))
    return misuse(`API must be v2, v3, bridge or moving, got ${api}`);
  if (!/^[1-9]\d*$/.test(repeat)) return misuse(`N must be an integer >= 1, got ${repeat}`);

  const results = new Map();
  for (let round = 1; round <= Number(repeat); round++) {
    const start = performance.now();
    const { output, tests } = runOnce(api);
    if (output !== undefined) {
      report(results);
      console.error(`${output}\nfailed in round ${round} of ${repeat}`);
      return 1;
    }
    for (const { name, recovered } of tests) {
      const { passes = 0, seconds = [] } = results.get(name) ?? {};
      results.set(name, { passes: passes + 1, seconds: [...seconds, ...recovered] });
    }
    console.log(
      `${round} of ${repeat}: ${tests.length} passed in ${((performance.now() - start) / 1000).toFixed(0)} s`,
    );
  }
  report(results);
  return 0;
}

function misuse(problem) {
  console.error(`${problem}\n${USAGE}`);
  return 2;
}

/** Returns the outcome of each test, or the output of a failed run. */
function runOnce(api) {
  const directory = mkdtempSync(join(tmpdir(), 'faults-'));
  try {
    const file = join(directory, 'results.json');
    const args = ['run', `--project=faults-${api}`];
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
    const { status, stdout, stderr } = spawnSync('node_modules/.bin/vitest', [...args, ...reporters], {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, FAULTS: 'named' },
      maxBuffer: 64 * 1024 * 1024,
    });
    if (status !== 0) return { output: `${stdout}${stderr}` };
    const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
    const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
    // Skipped and todo tests count as failures.
    if (tests.length === 0 || tests.some((test) => test.status !== 'passed'))
      return { output: `${stdout}${stderr}\nnot every test was run` };
    return { tests: tests.map(outcome) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function outcome({ ancestorTitles, title, meta }) {
  return { name: [...ancestorTitles, title].join(': '), recovered: meta.recovered ?? [] };
}

function report(results) {
  const rows = [...results]
    .map(([name, { passes, seconds }]) => ({ name, passes, ...summary(seconds) }))
    .sort((a, b) => a.name.localeCompare(b.name));
  console.log('passes  recovery in seconds: min, median, max');
  for (const { name, passes, min, median, max } of rows)
    console.log(`${String(passes).padStart(6)}  ${[min, median, max].map((s) => s.padStart(6)).join('')}  ${name}`);
}

function summary(seconds) {
  if (seconds.length === 0) return { min: '-', median: '-', max: '-' };
  const sorted = seconds.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.floor((sorted.length - 1) * share)].toFixed(2);
  return { min: at(0), median: at(0.5), max: at(1) };
}
