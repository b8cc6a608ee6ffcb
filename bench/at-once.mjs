// 64 locks at once in one process: `npm run build && node bench/at-once.mjs`. Processor time is that of the client, without etcd.
import { randomUUID } from 'node:crypto';
import { loadavg } from 'node:os';
import { apart } from './contestants/apart.mjs';
import { pythonEtcd } from './contestants/python.mjs';
import { number, span } from './report/format.mjs';
import { median, ratio } from './report/stats.mjs';
import { alternate, among, WARM_UP } from './sections/rounds.mjs';
import { startEtcd } from './setting/etcd.mjs';
import { keepApart } from './setting/processors.mjs';

const LOCKS = 64;
const ROUNDS = 28;
const TIMES = 10;
const FLOOR = 'gateway-pool';

/** In the order of the report. `isNew`: uses new locks in each round. */
const CONTESTANTS = [
  { of: FLOOR },
  { of: 'manager-v3', what: 'new locks', isNew: true },
  { of: 'manager-v3', what: 'the same locks again, and so the same keys' },
  { of: 'etcd3' },
  { of: 'manager', what: 'etcd v2' },
];

const print = (line) => process.stdout.write(`${line}\n`);

// The exit handlers stop all started processes; they do not run when a signal ends this process.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const etcd = await startEtcd({ inMemory: true, processors: keepApart()?.servers });
if (etcd === undefined) throw new Error('too little memory for etcd');
const all = [];
for (const { of, what, isNew = false } of CONTESTANTS) {
  const contestant = await apart(of, etcd.url);
  const title = what === undefined ? contestant.title : `${contestant.title}, ${what}`;
  all.push({ ...contestant, id: isNew ? `${of}-new` : of, title, isNew });
}
const python = pythonEtcd(etcd.url);
all.push({ ...python, title: `${python.title} in ${LOCKS} threads, etcd v2` });
await among(all, async () => {
  const sample = ({ id, isNew, together }, times) => together(`at-once-${isNew ? randomUUID() : id}`, times, LOCKS);
  for (const contestant of all) await sample(contestant, WARM_UP * TIMES);
  const samples = await alternate(all, ROUNDS, (contestant) => sample(contestant, TIMES));
  const roundsOf = (id, of) => samples[id].map((one) => [one[of]]);
  print(`${LOCKS} locks at once, etcd 3.4 with its data in memory, load ${number(loadavg()[0])}`);
  for (const { id, title } of all) {
    const [took, processor] = ['took', 'processor'].map((of) => median(roundsOf(id, of).flat()));
    const rate = ratio(roundsOf(FLOOR, 'took'), roundsOf(id, 'took'));
    const work = ratio(roundsOf(id, 'processor'), roundsOf(FLOOR, 'processor'));
    print(title);
    print(`  cycles a second: ${number(1000 / took)}, ${number(rate.median)} of the floor's (${span(rate)})`);
    print(`  processor time in ms: ${number(processor)}, ${number(work.median)} times the floor's (${span(work)})`);
    print(`  cycles a second of processor time: ${number(1000 / processor)}`);
  }
});
await etcd.stop();
process.exit();
