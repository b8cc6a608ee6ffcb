/** Runs worlds in this process. `scripts/simulate.mjs` starts it, with a job as its argument. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Api, type Plan, planOf, SCENARIO_NAMES, type Scenario } from './plan.ts';
import { shrink } from './shrink.ts';
import { Program } from './virtual/program.ts';
import { type Outcome, type Programs, runWorld } from './world.ts';

interface Job {
  /** Where the bundled programs are. */
  readonly directory: string;
  readonly seed: number;
  readonly step: number;
  /** The seed behind the last one. */
  readonly until: number;
  readonly scenario?: string;
  readonly api?: Api;
  /** Whether to print the timeline of each world. */
  readonly trace: boolean;
  /** Whether to print nothing about a violation. */
  readonly isBrief?: boolean;
}

/** Number of lines of a timeline to print. */
const LAST_LINES = 60;

const out = (text: string): void => void process.stdout.write(`${text}\n`);

async function main(job: Job): Promise<number> {
  const { directory, seed, step, until, scenario, api, trace, isBrief = false } = job;
  if (scenario !== undefined && !SCENARIO_NAMES.some((name) => name === scenario)) {
    out(`unknown scenario ${scenario}: use one of ${SCENARIO_NAMES.join(', ')}`);
    return 2;
  }
  const load = <T extends object>(name: string): Program<T> => {
    const file = join(directory, name);
    return new Program<T>(readFileSync(file, 'utf8'), file);
  };
  const programs: Programs = { bridge: load('bridge.cjs'), client: load('client.cjs'), etcd: load('etcd.cjs') };
  const chosen = {
    ...(scenario === undefined ? {} : { scenario: scenario as Scenario }),
    ...(api === undefined ? {} : { api }),
  };
  for (let each = seed; each < until; each += step) {
    const plan = planOf(each, chosen);
    const outcome = await runWorld(plan, programs);
    if (trace) out(timeline(plan, outcome));
    const isFailed = outcome.violations.length > 0;
    await tell(sumOf(plan, outcome), outcome.violations[0]);
    if (!isFailed) continue;
    if (isBrief) return 1;
    const again = await runWorld(plan, programs, true);
    out(await report(plan, again.violations.length > 0 ? again : outcome, programs, job));
    return 1;
  }
  return 0;
}

/** Tells the parent process about a world. */
async function tell(sum: object, first: string | undefined): Promise<void> {
  if (!process.send) return;
  await new Promise((resolve) => void process.send?.({ sum, first }, undefined, undefined, resolve));
}

function sumOf(plan: Plan, outcome: Outcome) {
  const { violations, time, holds, calls, losses, excused, elections, network, members, outcomes, digest } = outcome;
  const faults: Record<string, number> = {};
  for (const { kind } of plan.faults) faults[kind] = (faults[kind] ?? 0) + 1;
  return {
    worlds: 1,
    violations: violations.length,
    time,
    holds,
    calls,
    losses,
    'excused overlaps': excused,
    elections,
    scenarios: { [plan.scenario]: 1 },
    apis: { [plan.api]: 1 },
    faults,
    network,
    members: { ...members },
    outcomes: Object.fromEntries(outcomes),
    // The sum of all worlds is the same whatever runs which.
    'sum of digests': Number.parseInt(digest.slice(0, 8), 16),
  };
}

const timeline = (plan: Plan, { trace }: Outcome): string => [JSON.stringify(plan, undefined, 2), ...trace].join('\n');

async function report(
  plan: Plan,
  outcome: Outcome,
  programs: Programs,
  { directory, scenario, api }: Job,
): Promise<string> {
  const {
    plan: smallest,
    outcome: its,
    tries,
  } = await shrink(plan, outcome, (tried) => runWorld(tried, programs, true));
  const options = [
    `--seed ${plan.seed}`,
    ...(scenario ? [`--scenario ${scenario}`] : []),
    ...(api ? [`--api ${api}`] : []),
  ];
  const file = join(directory, '..', `simulation-${plan.seed}.txt`);
  writeFileSync(file, timeline(smallest, its));
  return [
    `The smallest world that fails as that of seed ${plan.seed}, found in ${tries} tries, is in ${file}.`,
    `It has ${smallest.clients.length} processes and ${smallest.faults.length} faults. Its end:`,
    ...its.trace.slice(-LAST_LINES),
    '',
    `Seed ${plan.seed}, scenario ${plan.scenario}, API ${plan.api}:`,
    ...outcome.violations.map((violation) => `  ${violation}`),
    `Repeat: npm run simulate -- --worlds 1 ${options.join(' ')}`,
    `Debug: node --inspect-brk scripts/simulate.mjs --here --worlds 1 ${options.join(' ')}`,
  ].join('\n');
}

main(JSON.parse(process.argv[2] ?? '{}') as Job).then(
  (code) => process.exit(code),
  (error: unknown) => {
    out(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.exit(1);
  },
);
