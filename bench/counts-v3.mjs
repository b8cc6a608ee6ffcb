// Prints all counts on etcd's v3 API as JSON: `node bench/counts-v3.mjs`. They do not depend on the speed of the machine. Starts
// its own etcd, because its raft writes and watches are counted.
import { v3 } from './contestants/v3.mjs';
import { bridgedPython } from './sections/bridge.mjs';
import { countDrain } from './sections/drain.mjs';
import { countHandOver } from './sections/hand-over.mjs';
import { held } from './sections/held.mjs';
import { countLongQueue } from './sections/long-queue.mjs';
import { countCycles, countRaftWrites } from './sections/uncontended.mjs';
import { startEtcdForCounts } from './setting/etcd.mjs';

// Go's client would have to be built first.
const api = v3({ go: false });
const [etcd, other] = await Promise.all([startEtcdForCounts(), startEtcdForCounts()]);
// Lasts longest: it waits for renewals.
const holding = held(other, { ttl: 30, thirds: 3, count: 1000 });
const counts = {
  cycles: { ...(await countCycles(api, etcd)), ...(await countCycles(bridgedPython, etcd)) },
  raftWrites: { ...(await countRaftWrites(api, etcd)), ...(await countRaftWrites(bridgedPython, etcd)) },
  handOver: await countHandOver(api, etcd),
  drain: await countDrain(api, etcd, [5, 30]),
  longQueue: await countLongQueue(etcd, [11, 1000]),
  held: await holding,
};
process.stdout.write(JSON.stringify(counts));
await Promise.all([etcd.stop(), other.stop()]);
