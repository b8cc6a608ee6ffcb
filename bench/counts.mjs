// Prints all counts as JSON: `node bench/counts.mjs ETCD_URL`. They do not depend on the speed of the machine.
import { countDrain } from './sections/drain.mjs';
import { countHandOver } from './sections/hand-over.mjs';
import { idle } from './sections/idle.mjs';
import { countCycles } from './sections/uncontended.mjs';
import { waiters } from './sections/waiters.mjs';

const etcd = { url: process.argv[2] };
const counts = {
  cycles: await countCycles(etcd),
  handOver: await countHandOver(etcd),
  drain: await countDrain(etcd, [5, 30]),
  waiters: await waiters(etcd, 'manager', 300),
  idle: await idle(etcd, { ttl: 3, thirds: 6 }),
};
process.stdout.write(JSON.stringify(counts));
