// Costs of a bridge: `npm run build && node bench/bridge.mjs`.
import { loadavg } from 'node:os';
import { number, span } from './report/format.mjs';
import { ratio } from './report/stats.mjs';
import { bridgedCycles, bridgedPolls } from './sections/bridge.mjs';
import { startEtcd } from './setting/etcd.mjs';
import { keepApart } from './setting/processors.mjs';

const CYCLES = { rounds: 28, times: 20 };
const POLLS = { entries: 500, polls: 2000 };

const print = (line) => process.stdout.write(`${line}\n`);
const median = (rounds) => rounds.flat().toSorted((a, b) => a - b)[Math.floor(rounds.flat().length / 2)];

// The exit handlers stop all started processes; they do not run when a signal ends this process.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const processors = keepApart()?.servers;
for (const inMemory of [false, true]) {
  const etcd = await startEtcd({ inMemory, processors });
  if (etcd === undefined) continue;
  print(`etcd with its data ${inMemory ? 'in memory' : 'on a disk'}, load ${number(loadavg()[0])}`);
  const { direct, bridged } = await bridgedCycles(etcd, CYCLES, processors);
  const of = ratio(bridged, direct);
  print(`  a cycle of python-etcd, time through a bridge ÷ time on etcd v2: ${number(of.median)} (${span(of)})`);
  print(`  medians in ms: ${number(median(bridged))} through a bridge, ${number(median(direct))} on etcd v2`);
  if (inMemory) {
    const { entries, polls, bridge, etcd: atEtcd, woken, took } = await bridgedPolls(etcd, POLLS, processors);
    print(`${polls} open polls on ${entries} entries`);
    print(`  memory of a poll in KiB: ${number(bridge)} in the bridge, ${number(atEtcd)} in etcd`);
    print(`  from the removal of an entry to the end of its ${woken} polls: ${number(took)} ms`);
  }
  await etcd.stop();
}
process.exit();
