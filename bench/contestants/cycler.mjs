// One contestant of the uncontended cycle in its own process: `cycler.mjs ID URL`, controlled by JSON lines.
import { answerLines } from '../setting/answering.mjs';
import { clocked } from '../setting/clock.mjs';
import { npmEtcd3 } from './etcd3.mjs';
import { threeRequests, twoWrites } from './floors.mjs';
import { twoWritesByGateway, twoWritesByGrpc } from './floors-v3.mjs';
import { ours, oursInTurn } from './ours.mjs';

/** As many as a client of this package uses at the same time for short requests. */
const CONNECTIONS = 64;

const [id, url] = process.argv.slice(2);
const makers = {
  lock: () => ours('lock', url),
  manager: () => ours('manager', url),
  'lock-v3': () => ours('lock', url, 'v3'),
  'manager-v3': () => ours('manager', url, 'v3'),
  'managers-v3': () => oursInTurn('manager', url, 'v3', 8),
  writes: () => twoWrites(url),
  requests: () => threeRequests(url),
  gateway: () => twoWritesByGateway(url),
  'gateway-pool': () => twoWritesByGateway(url, CONNECTIONS),
  grpc: () => twoWritesByGrpc(url),
  etcd3: () => npmEtcd3(url),
};
const contestant = makers[id]();

/** Returns the milliseconds of each of so many cycles, one after the other. */
async function timed(times, nameOf) {
  const took = [];
  for (let i = 0; i < times; i += 1) took.push(await clocked(() => contestant.cycle(nameOf(i))));
  return took;
}

await answerLines({
  title: async () => contestant.title,
  cycles: ({ name, times }) => timed(times, () => name),
  onceEach: ({ name, times }) => timed(times, (i) => `${name}-${i}`),
  async together({ name, times, locks }) {
    const cycles = async (_, index) => {
      for (let i = 0; i < times; i += 1) await contestant.cycle(`${name}-${index}`);
    };
    const before = process.cpuUsage();
    const took = await clocked(() => Promise.all(Array.from({ length: locks }, cycles)));
    const { user, system } = process.cpuUsage(before);
    const count = times * locks;
    return { took: took / count, processor: (user + system) / 1000 / count };
  },
});
await contestant.stop();
// npm etcd3 leaves handles open.
process.exit();
