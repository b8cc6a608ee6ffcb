import { AT_ONCE } from '../sections/at-once.mjs';
import { number, span, table } from './format.mjs';
import { goalTable } from './goals.mjs';
import { ranges } from './plots.mjs';
import { ratio, summary } from './stats.mjs';
import { drains, timings } from './timings.mjs';

const PEERS = ['etcd3', 'etcdctl', 'go'];

export const HOW_V3 = `The package as \`new EtcdClient({ endpoints, api: 'v3' })\`, through etcd's JSON gateway. Every figure comes from one run of \`npm run bench -- --api v3\`,
and is measured as on etcd's v2 API (see [report.md](report.md)): contestants take turns in each round, in random order, and ratios are calculated within each
round. The load beside a table is the machine's one-minute load average before and after its rounds; 1 to 2 of it is the bench itself.

- The **floor** is what every lock in the queue of Go's \`concurrency.Mutex\` needs, as bare undici requests to the gateway: one transaction that
  creates the key and reads the first one, and one \`deleterange\`. One lease serves all cycles. "The same two requests, gRPC" sends them with npm etcd3's client.
- Go's \`concurrency.Mutex\` runs in a Go program of its own over gRPC, with one session (${'`client/v3`'} 3.6.16). npm etcd3's lock creates and revokes a lease in
  each cycle and cannot wait. \`etcdctl lock\` starts a process for each cycle.
- \`Lock\` renews no lease by default, so no two locks share one. A free lease serves the next \`Lock\`, after a keep-alive, which is no raft write.
- Raft writes are counted at etcd (\`etcd_server_proposals_applied_total\`): each is a sync of the disk, unless it shares one with another.`;

const WHY_V3 = `- Go's \`concurrency.Mutex\` sends the same two requests per cycle, by gRPC. The gateway decodes JSON and passes each request on by gRPC inside
  etcd, which costs the server about 0.3 to 0.5 ms of CPU time per request, and Go's client needs less CPU time than a Node process.
- In the hand-over, Go's \`concurrency.Mutex\` and \`etcdctl lock\` begin their watch at the revision of their last read. To etcd, such a watch lags
  behind; it looks after those every 100 ms. This package watches from the next revision on. The difference is seen only if the lock is
  released in the first 100 ms of a wait, as here. In a draining queue the waiters have waited for longer.`;

const AT_ONCE_HOW = `One process acquires and releases ${AT_ONCE} locks of different names at the same time, over and over. The time is that of all cycles together,
divided by their number. The floor has a connection for each lock.`;

const AGED_HOW = `A lock after that many cycles, against a new one in the same rounds. Nothing compacts etcd in between, so that each read visits the keys that the
earlier cycles have removed. A session of Go's \`concurrency.Mutex\` has one key in a queue, as npm etcd3's lock has. This package creates some keys,
then uses them again.`;

const ONCE_EACH_HOW = `Names that nobody has used before, one after the other. A name used once has no key that could serve again.`;

/** Returns the sections of the report as pairs of heading and text. */
export function textV3(results) {
  const { uncontended, aged, onceEach, atOnce, handOver, drain, longQueue, held } = results;
  return [
    ['Goals', goalTable(goals(results))],
    ['Against each peer', `${comparisons(results)}\n\n${WHY_V3}`],
    ['Uncontended: acquire + release', legs(uncontended, { floor: 'gateway', load: uncontended.load })],
    ['After many cycles', `${AGED_HOW}\n\n${agedTable(aged)}`],
    [`${onceEach.locks} locks, once each`, onceEachText(onceEach)],
    [`${AT_ONCE} uncontended locks at once`, `${AT_ONCE_HOW}\n\n${legs(atOnce, { floor: 'gateway' })}`],
    ['Hand-over: release to the next acquire', legs(handOver, { floor: 'event', unit: 'hand-over' })],
    ['Draining a queue', `${loadLine(drain.direct.load)}\n\n${drains(drain.direct, drain.counts)}`],
    ['Costs that do not depend on the machine', costs(uncontended, longQueue, held)],
  ];
}

const onceEachText = ({ load, ...measured }) =>
  `${ONCE_EACH_HOW}\n\n${loadLine(load)}\n\n${timings(measured, { own: 'manager' })}`;

/** The plots of the report, by name. */
export const plotsV3 = async ({ uncontended, handOver }) => ({
  'v3-uncontended': await ranges('ms per cycle', { direct: uncontended.direct }),
  'v3-hand-over': await ranges('ms per hand-over', { direct: handOver.direct }),
});

export const PICTURES_V3 = { Uncontended: 'v3-uncontended', 'Hand-over': 'v3-hand-over' };

const LEGS = { direct: 'Data on the disk', memory: 'Data in memory, so that writes wait for no disk' };

const loadLine = ([before, after]) => `Load ${number(before)} before, ${number(after)} after.`;

function legs(section, { load, ...options }) {
  const { counts, raftWrites } = section;
  return Object.entries(LEGS)
    .filter(([leg]) => section[leg])
    .map(([leg, title]) => {
      const measured = section[leg];
      const rows = timings(measured, { ...options, own: 'manager', counts, raftWrites });
      return `**${title}**\n\n${loadLine(load ?? measured.load)}\n\n${rows}`;
    })
    .join('\n\n');
}

const shown = (of) => `${number(of.median)} (${span(of)})`;

function goals({ uncontended, aged, atOnce, handOver, drain, longQueue, held }) {
  const [short, long] = Object.keys(longQueue);
  const bytes = longQueue[long].bytesPerHandOver / longQueue[short].bytesPerHandOver;
  const sizes = Object.keys(drain.counts.manager);
  const drained = sizes.map((size) => drain.counts.manager[size]);
  const [least, most] = [drained[0], drained.at(-1)].map(({ bytesPerHandOver }) => bytesPerHandOver);
  const rate = (what, { direct: { rounds } }, whose, peer, limit, why) => {
    const of = ratio(rounds[peer], rounds.manager);
    const measured = `${shown(of)}; \`Lock\`: ${shown(ratio(rounds[peer], rounds.lock))}`;
    return { goal: `${what}: cycles per second ÷ ${whose} ≥ ${limit}`, measured, reached: of.median >= limit, why };
  };
  const many = `${AT_ONCE} locks at once`;
  const { requests, trips } = uncontended.counts.manager;
  const counted = `${requests}, ${trips} and ${uncontended.raftWrites.manager}`;
  const handedOver = handOver.counts.manager.kinds;
  const { keepAlives, reads } = perThird(held);
  return [
    rate('one lock', uncontended, "the floor's", 'gateway', 0.85, 'v3Floor'),
    rate('one lock', uncontended, "npm etcd3's", 'etcd3', 2, 'v3Peers'),
    rate(many, atOnce, "the floor's", 'gateway', 0.85, 'v3Floor'),
    rate(many, atOnce, "npm etcd3's", 'etcd3', 2, 'v3Peers'),
    {
      goal: 'uncontended: requests, round trips and raft writes: 2, 2 and 2',
      measured: counted,
      reached: counted === '2, 2 and 2',
    },
    ...Object.entries(aged.byAge).flatMap(([age, taken]) =>
      ['manager', 'managers'].map((id) => {
        const of = ratio(taken[id].old, taken[id].new);
        const goal = `${aged.titles[id]}: time after ${age} cycles ÷ that of a new lock ≤ 1.15`;
        return { goal, measured: shown(of), reached: of.median <= 1.15 };
      }),
    ),
    {
      goal: 'hand-over: requests of the waiter ≤ 2',
      measured: `${handedOver.read}, after the removal`,
      reached: handedOver.read <= 2,
    },
    {
      goal: `draining: bytes per hand-over of ${sizes.at(-1)} waiters ÷ those of ${sizes[0]} ≤ 1.1`,
      measured: number(most / least),
      reached: most / least <= 1.1,
    },
    {
      goal: `ten hand-overs at the head of a queue of ${long}: bytes ÷ those in a queue of ${short} ≤ 1.1`,
      measured: number(bytes),
      reached: bytes <= 1.1,
    },
    {
      goal: `${held.count} held locks: one keep-alive and one read per TTL/3`,
      measured: `${number(keepAlives)} × keep-alive, ${number(reads)} × read`,
      reached: keepAlives <= 1 && reads <= 1,
    },
  ];
}

/** Requests of held locks per TTL/3. */
const perThird = ({ thirds, kinds: { renewal, confirmation = 0, poll = 0 } }) => ({
  keepAlives: renewal / thirds,
  reads: confirmation / thirds,
  streams: poll / thirds,
});

/** How long each peer takes, in times of ours: more than 1 is slower than this package. */
function comparisons({ uncontended, atOnce, handOver, drain }) {
  const rows = [
    ...Object.entries(LEGS)
      .filter(([leg]) => uncontended[leg])
      .flatMap(([leg, where]) => [
        ...against(`uncontended (${where.toLowerCase()})`, uncontended[leg]),
        ...against(`${AT_ONCE} locks at once (${where.toLowerCase()})`, atOnce[leg]),
        ...against(`hand-over (${where.toLowerCase()})`, handOver[leg]),
      ]),
    ...Object.entries(drain.direct.bySize).flatMap(([size, rounds]) =>
      against(`a queue of ${size} draining`, { titles: drain.direct.titles, rounds }),
    ),
  ];
  const columns = [
    ['', ({ title }) => title],
    ['what', ({ what }) => what],
    ['time ÷ that of `LockManager`', ({ of }) => shown(of)],
    ['time ÷ that of `Lock`', ({ ofLock }) => shown(ofLock)],
    ['faster than `LockManager`', ({ of }) => (of.median < 1 ? '**yes**' : 'no')],
  ];
  return table(columns, rows);
}

const against = (what, { titles, rounds }) =>
  PEERS.filter((id) => rounds[id]).map((id) => ({
    what,
    title: titles[id],
    of: ratio(rounds[id], rounds.manager),
    ofLock: ratio(rounds[id], rounds.lock),
  }));

function agedTable({ titles, byAge, load }) {
  const rows = Object.entries(byAge).flatMap(([age, taken]) =>
    Object.entries(taken).map(([id, of]) => ({
      age,
      title: titles[id],
      old: summary(of.old),
      of,
      fresh: summary(of.new),
    })),
  );
  const columns = [
    ['', ({ title }) => title],
    ['cycles before', ({ age }) => age],
    ['ms per cycle: median', ({ old }) => number(old.median)],
    ['new lock', ({ fresh }) => number(fresh.median)],
    ['ratio', ({ of }) => shown(ratio(of.old, of.new))],
  ];
  return `${loadLine(load)}\n\n${table(columns, rows)}`;
}

function costs({ counts, raftWrites, direct: { titles } }, longQueue, held) {
  const cycles = table(
    [
      ['a cycle of', ([id]) => titles[id]],
      ['requests', ([, { requests }]) => requests],
      ['round trips', ([, { trips }]) => trips],
      ['raft writes', ([id]) => number(raftWrites[id])],
    ],
    Object.entries(counts),
  );
  const queues = table(
    [
      ['entries in the queue', ([length]) => length],
      ['bytes per hand-over, both ways', ([, { bytesPerHandOver }]) => number(bytesPerHandOver)],
    ],
    Object.entries(longQueue),
  );
  const { count, ttl } = held;
  const { keepAlives, reads, streams } = perThird(held);
  return `${cycles}

${queues}

${count} locks held by one client, TTL ${ttl} s: per TTL/3 ${number(keepAlives)} keep-alive, ${number(reads)} read, and ${number(streams)} streams that
watch some of them, each of which begins with a read.`;
}
