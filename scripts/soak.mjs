// `npm run soak -- --api v3 --minutes 10 --seed N`: injects random faults into a real cluster for some minutes.
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { run } from './run.mjs';

const USAGE = 'usage: npm run soak -- [--api v2|v3] [--bridges] [--minutes N] [--seed N]';

process.exitCode = soak();

function soak() {
  let values;
  try {
    const text = { type: 'string' };
    const bridges = { type: 'boolean', default: false };
    ({ values } = parseArgs({ options: { api: text, bridges, minutes: text, seed: text } }));
  } catch (error) {
    return misuse(error.message);
  }
  const { api = 'v2', minutes = '10', seed = String(randomInt(2 ** 31)) } = values;
  if (api !== 'v2' && api !== 'v3') return misuse(`API must be v2 or v3, got ${api}`);
  if (values.bridges && api !== 'v3') return misuse('--bridges needs --api v3');
  if (!/^\d+(\.\d+)?$/.test(minutes) || Number(minutes) === 0)
    return misuse(`minutes must be a number > 0, got ${minutes}`);
  if (!/^\d+$/.test(seed) || Number(seed) >= 2 ** 31)
    return misuse(`seed must be an integer from 0 to 2 ** 31 - 1, got ${seed}`);
  console.log(`seed ${seed}`);
  const env = {
    FAULTS: 'campaign',
    SOAK_SEED: seed,
    SOAK_SECONDS: String(Math.round(Number(minutes) * 60)),
    SOAK_BRIDGES: values.bridges ? '1' : '',
  };
  const args = ['run', 'test/faults/campaign.test.ts', `--project=faults-${api}`, '--disable-console-intercept'];
  return run('node_modules/.bin/vitest', args, env) === 0 ? 0 : 1;
}

function misuse(problem) {
  console.error(`${problem}\n${USAGE}`);
  return 2;
}
