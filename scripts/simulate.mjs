// `npm run simulate -- --worlds 5000 --seed N --scenario NAME`: runs simulated worlds, each from a seed, in virtual time.
import { fork } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BUGS } from '../test/simulation/bugs.mjs';
import { ensurePackages } from './packages.mjs';
import { root } from './run.mjs';
import { coverageOf } from './simulation-coverage.mjs';

const USAGE = `usage: npm run simulate -- [--worlds N] [--seed N] [--scenario NAME] [--api v2|v3|both] [--here]
  --worlds N       number of worlds (default 300)
  --seed N         seed of the first world; the others have the next seeds (default: random)
  --scenario NAME  one scenario instead of all
  --api API        one API instead of all
  --bug NAME       plant a bug of test/simulation/bugs.mjs, which must be found
  --coverage       print which lines of the source were reached
  --here           run in this process, for a debugger: node --inspect-brk scripts/simulate.mjs --here --worlds 1 --seed N
  --trace          print the timeline of each world`;

const LAST_SEED = 2 ** 31 - 1;

/** V8 collects garbage less often, when fewer objects are in use, and keeps the code of functions that no world has used for a while. */
const NODE_FLAGS = [
  '--enable-source-maps',
  '--min-semi-space-size=32',
  '--max-semi-space-size=64',
  '--no-flush-bytecode',
];

let values;
try {
  const text = { type: 'string' };
  const flag = { type: 'boolean', default: false };
  const options = {
    worlds: text,
    seed: text,
    scenario: text,
    api: text,
    bug: text,
    here: flag,
    trace: flag,
    coverage: flag,
  };
  ({ values } = parseArgs({ options }));
  for (const name of ['worlds', 'seed'])
    if (values[name] !== undefined && !/^\d{1,10}$/.test(values[name]))
      throw new Error(`${name} must be a whole number, got ${values[name]}`);
  if (values.api !== undefined && !['v2', 'v3', 'both'].includes(values.api))
    throw new Error(`API must be v2, v3 or both, got ${values.api}`);
  if (values.bug !== undefined && !BUGS.some(({ name }) => name === values.bug))
    throw new Error(`unknown bug ${values.bug}: test/simulation/bugs.mjs has them`);
} catch (error) {
  console.error(`${error.message}\n${USAGE}`);
  process.exit(2);
}

const { scenario, api, here, trace, coverage } = values;
const worlds = Number(values.worlds ?? 300);
const seed = Number(values.seed ?? randomInt(LAST_SEED - worlds));
// First: npm removes what is in node_modules.
ensurePackages();
mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
const directory = mkdtempSync(join(root, 'node_modules/.cache/simulation-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
const { writePrograms } = await import('./simulation-bundle.mjs');
await writePrograms(
  directory,
  BUGS.filter(({ name }) => name === values.bug),
);
if (here) {
  process.argv.splice(2, Number.POSITIVE_INFINITY, JSON.stringify(jobOf(0, 1)));
  await import(join(directory, 'main.cjs'));
} else process.exitCode = await runAll();

function jobOf(first, step) {
  return { directory, seed: seed + first, step, until: seed + worlds, scenario, api, trace };
}

/** Runs the worlds in as many processes as there are processors. Returns the exit code. */
async function runAll() {
  const start = performance.now();
  console.log(`${worlds} worlds from seed ${seed} on`);
  const count = Math.min(availableParallelism(), worlds);
  const totals = {};
  const children = Array.from({ length: count }, (_, i) => {
    const job = JSON.stringify(jobOf(i, count));
    const env = coverage ? { ...process.env, NODE_V8_COVERAGE: join(directory, 'coverage') } : process.env;
    return fork(join(directory, 'main.cjs'), [job], { execArgv: NODE_FLAGS, env });
  });
  process.on('exit', () => {
    for (const child of children) child.kill('SIGKILL');
  });
  const codes = children.map(
    (child) =>
      new Promise((resolve) => {
        child.on('message', ({ sum }) => add(totals, sum));
        child.on('exit', (code) => {
          // One violation is enough.
          if (code !== 0) for (const other of children) other.kill('SIGKILL');
          resolve(code ?? 0);
        });
      }),
  );
  const code = Math.max(...(await Promise.all(codes)));
  if (coverage) console.log(coverageOf(join(directory, 'coverage'), join(directory, 'client.cjs')));
  console.log(summaryOf(totals, performance.now() - start));
  return code;
}

function add(totals, sum) {
  for (const [name, value] of Object.entries(sum))
    if (typeof value === 'number') totals[name] = (totals[name] ?? 0) + value;
    else {
      totals[name] ??= {};
      add(totals[name], value);
    }
}

function summaryOf({ worlds: done = 0, violations = 0, time = 0, ...counts }, took) {
  const lines = Object.entries(counts).map(([name, value]) => {
    if (typeof value === 'number') return `${name}: ${value}`;
    const parts = Object.entries(value).sort(([one], [other]) => one.localeCompare(other));
    return `${name}: ${parts.map(([part, number]) => `${part} ${number}`).join(', ')}`;
  });
  const hours = (time / 3_600_000).toFixed(1);
  return [
    ...lines,
    `${done} worlds, ${hours} virtual hours, ${violations} violations, in ${(took / 1000).toFixed(1)} s`,
  ].join('\n');
}
