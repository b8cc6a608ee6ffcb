// `node scripts/simulation-bugs.mjs [--worlds N] [--seed N] [NAME…]`: plants each bug of test/simulation/bugs.mjs, and tells after how many worlds it is found.
import { fork } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BUGS } from '../test/simulation/bugs.mjs';
import { root } from './run.mjs';
import { writePrograms } from './simulation-bundle.mjs';

/** Milliseconds for one world. */
const PATIENCE = 120_000;

const text = { type: 'string' };
const options = { worlds: { ...text, default: '150' }, seed: { ...text, default: '1' } };
const { values, positionals: names } = parseArgs({ options, allowPositionals: true });
const [worlds, seed] = [Number(values.worlds), Number(values.seed)];
const unknown = names.filter((name) => !BUGS.some((bug) => bug.name === name));
if (unknown.length > 0) throw new Error(`unknown bugs: ${unknown.join(', ')}`);

mkdirSync(join(root, 'node_modules/.cache'), { recursive: true });
const directory = mkdtempSync(join(root, 'node_modules/.cache/simulation-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

const planted = BUGS.filter(({ name }) => names.length === 0 || names.includes(name));
console.log('| bug | rule | worlds | found after | first violation |\n| --- | --- | --- | --- | --- |');
let missed = 0;
for (const bug of planted) {
  await writePrograms(directory, [bug]);
  const { name, rule, api = 'all', scenario = 'all' } = bug;
  const { count, violation } = await find(bug);
  if (violation === undefined) missed += 1;
  const found = violation === undefined ? `not in ${count}` : count;
  console.log(`| ${name} | ${rule} | ${api}, ${scenario} | ${found} | ${violation ?? ''} |`);
}
console.log(`${planted.length - missed} of ${planted.length} bugs found`);

/** Resolves to the number of worlds until the first violation, and to that violation, if there was one. */
function find({ api, scenario }) {
  const job = { directory, seed, step: 1, until: seed + worlds, api, scenario, trace: false, isBrief: true };
  const child = fork(join(directory, 'main.cjs'), [JSON.stringify(job)]);
  let count = 0;
  let violation;
  const hangs = () => {
    count += 1;
    violation = `no end of the world of seed ${seed + count - 1} within ${PATIENCE / 1000} s`;
    child.kill('SIGKILL');
  };
  let timer = setTimeout(hangs, PATIENCE);
  child.on('message', ({ first }) => {
    count += 1;
    violation ??= first?.split('\n', 1)[0];
    clearTimeout(timer);
    timer = setTimeout(hangs, PATIENCE);
  });
  return new Promise((resolve) => {
    child.on('exit', () => {
      clearTimeout(timer);
      resolve({ count, violation });
    });
  });
}
