// `npm run bench`: compares this package with its alternatives, in one run on one real etcd.
import { parseArgs } from 'node:util';
import { v2 } from './contestants/v2.mjs';
import { machine } from './report/machine.mjs';
import { HOW } from './report/prose.mjs';
import { PICTURES, plots, text, write } from './report/report.mjs';
import { HOW_V3, PICTURES_V3, plotsV3, textV3 } from './report/v3.mjs';
import { contenders } from './sections/contenders.mjs';
import { debugCost } from './sections/debug.mjs';
import { countDrain, drain } from './sections/drain.mjs';
import { countHandOver, handOver } from './sections/hand-over.mjs';
import { idle } from './sections/idle.mjs';
import { countCycles, uncontended } from './sections/uncontended.mjs';
import { waiters } from './sections/waiters.mjs';
import { startEtcd } from './setting/etcd.mjs';
import { keepApart, keepTo } from './setting/processors.mjs';
import { startProxy } from './setting/proxy.mjs';
import { FULL_V3, measureV3, SHORT_V3 } from './v3.mjs';

const USAGE = `npm run bench -- [--api v2|v3] [--short]
Writes bench/report.md, bench/report-v3.md and their plots.
  --api v2|v3  measure on this API of etcd only, and write its report
  --short      run for about a minute: fewer and shorter rounds, small queues; print the results only`;

/** Many short rounds: a slowdown of the machine for a second then affects all contestants of a round alike. */
const FULL = {
  cycles: { rounds: 84, times: 50 },
  farCycles: { rounds: 14, times: 50 },
  handOvers: { rounds: 14, times: 50 },
  farHandOvers: { rounds: 14, times: 25 },
  contenders: { rounds: 28, seconds: 0.5 },
  sizes: [10, 100, 1000],
  drainRounds: 7,
  waiters: 10_000,
  alone: 1000,
  idle: { ttl: 30, thirds: 9 },
  debug: { rounds: 42, times: 100 },
};
const SHORT = {
  cycles: { rounds: 4, times: 30 },
  farCycles: { rounds: 2, times: 10 },
  handOvers: { rounds: 4, times: 10 },
  farHandOvers: { rounds: 2, times: 5 },
  contenders: { rounds: 2, seconds: 0.5 },
  sizes: [10, 50],
  drainRounds: 2,
  waiters: 1000,
  alone: 50,
  idle: { ttl: 3, thirds: 6 },
  debug: { rounds: 4, times: 60 },
};
const FAR_SIZES = 100;

const OPTIONS = {
  api: { type: 'string' },
  short: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
};

const reports = {
  v2: {
    file: 'report.md',
    title: 'Speed and scale',
    also: " [report-v3.md](report-v3.md) is about etcd's v3 API.",
    how: HOW,
    plan: { full: FULL, short: SHORT },
    measureWith: measureV2,
    text,
    plots,
    pictures: PICTURES,
  },
  v3: {
    file: 'report-v3.md',
    title: "Speed and scale on etcd's v3 API",
    how: HOW_V3,
    plan: { full: FULL_V3, short: SHORT_V3 },
    measureWith: (servers, plan) => measureV3(servers, plan, step),
    text: textV3,
    plots: plotsV3,
    pictures: PICTURES_V3,
  },
};

const print = (line) => process.stdout.write(`${line}\n`);

// The exit handlers stop all started processes; they do not run when a signal ends this process.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

process.exitCode = await main();

async function main() {
  let values;
  try {
    ({ values } = parseArgs({ options: OPTIONS }));
    if (values.api !== undefined && !(values.api in reports)) throw new Error(`unknown API: ${values.api}`);
  } catch (error) {
    process.stderr.write(`${error.message}\n${USAGE}\n`);
    return 2;
  }
  if (values.help) {
    print(USAGE);
    return 0;
  }
  for (const api of values.api === undefined ? Object.keys(reports) : [values.api]) {
    const { file, title, also, how, plan, measureWith, text, plots, pictures } = reports[api];
    const results = await measure(measureWith, values.short ? plan.short : plan.full);
    const sections = text(results);
    print(`${title}\n`);
    for (const line of results.machine) print(line);
    for (const [heading, body] of sections) print(`\n${heading}\n\n${body}`);
    if (values.short) continue;
    const drawn = await plots(results);
    write(
      { file, title, also, machine: results.machine, how, sections, drawn, pictures },
      new URL('./', import.meta.url),
    );
    print(`\nwritten to bench/${file}`);
  }
  return 0;
}

async function measure(measureWith, plan) {
  const apart = keepApart();
  const processors = apart?.servers;
  const etcd = await startEtcd({ processors });
  const unsynced = await startEtcd({ inMemory: true, processors });
  try {
    const about = await machine(etcd, apart);
    return { machine: about, ...(await measureWith({ etcd, unsynced, apart }, plan)) };
  } finally {
    await unsynced?.stop();
    await etcd.stop();
  }
}

async function measureV2({ etcd, unsynced, apart }, plan) {
  const near = await startProxy(etcd.url);
  const far = await startProxy(etcd.url, { delay: 2 });
  try {
    return { ...(await timed({ etcd, unsynced, near, far }, plan, apart)), ...(await costs(etcd, plan)) };
  } finally {
    await far.stop();
    await near.stop();
  }
}

async function timed({ etcd, unsynced, near, far }, plan, apart) {
  const { sizes, drainRounds } = plan;
  const farSizes = sizes.filter((size) => size <= FAR_SIZES);
  return {
    uncontended: {
      counts: await step('requests of a cycle', () => countCycles(v2, etcd)),
      ...(await step('uncontended', () => uncontended(v2, { direct: etcd.url }, plan.cycles))),
      ...(unsynced &&
        (await step('uncontended, in memory', () => uncontended(v2, { memory: unsynced.url }, plan.cycles)))),
      ...(await step('uncontended, through the proxies', () =>
        uncontended(v2, { near: near.url, far: far.url }, plan.farCycles),
      )),
    },
    handOver: {
      counts: await step('requests of a hand-over', () => countHandOver(v2, etcd)),
      direct: await step('hand-over', () => handOver(v2, etcd, etcd.url, plan.handOvers)),
      memory:
        unsynced && (await step('hand-over, in memory', () => handOver(v2, unsynced, unsynced.url, plan.handOvers))),
      far: await step('hand-over, 2 ms added', () => handOver(v2, etcd, far.url, plan.farHandOvers)),
    },
    contenders: await onAll(etcd, apart, async () => ({
      direct: await step('8 processes', () => contenders(etcd.url, plan.contenders, apart?.all)),
      far: await step('8 processes, 2 ms added', () => contenders(far.url, plan.contenders, apart?.all)),
    })),
    drain: {
      counts: await step('requests of a drain', () => countDrain(v2, etcd, sizes)),
      direct: await step('draining', () => drain(v2, etcd, etcd.url, sizes, drainRounds)),
      far: await step('draining, 2 ms added', () => drain(v2, etcd, far.url, farSizes, drainRounds)),
    },
  };
}

/** Runs the work with etcd on all processors: with this many busy processes, each half would be idle at times. */
async function onAll({ pid }, apart, work) {
  if (apart) keepTo(apart.all, pid);
  const result = await work();
  if (apart) keepTo(apart.servers, pid);
  return result;
}

async function costs(etcd, plan) {
  return {
    waiters: [
      await step('local waiters', () => waiters(etcd, 'manager', plan.waiters)),
      await step('waiters with one entry each', () => waiters(etcd, 'lock', plan.alone)),
      await step("python-etcd's waiters", () => waiters(etcd, 'python', plan.alone)),
    ],
    idle: await step('idle', () => idle(etcd, plan.idle)),
    debug: await step('debug', () => debugCost(etcd.url, plan.debug)),
  };
}

/** Prints the progress on stderr, because a run takes minutes. */
async function step(name, work) {
  const start = performance.now();
  const result = await work();
  process.stderr.write(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
  return result;
}
