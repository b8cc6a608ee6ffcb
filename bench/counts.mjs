// Prints all counts as JSON: `node bench/counts.mjs`. They do not depend on the speed of the machine. Starts its own etcd, because its
// long polls are counted.
import { v2 } from './contestants/v2.mjs';
import { countDrain } from './sections/drain.mjs';
import { countHandOver } from './sections/hand-over.mjs';
import { idle } from './sections/idle.mjs';
import { countCycles } from './sections/uncontended.mjs';
import { waiters } from './sections/waiters.mjs';
import { startEtcdForCounts } from './setting/etcd.mjs';

const etcd = await startEtcdForCounts();
const counts = {
  cycles: await countCycles(v2, etcd),
  handOver: await countHandOver(v2, etcd),
  drain: await countDrain(v2, etcd, [5, 30]),
  waiters: await waiters(etcd, 'manager', 300),
  idle: await idle(etcd, { ttl: 12, thirds: 6 }),
};
process.stdout.write(JSON.stringify(counts));
await etcd.stop();
