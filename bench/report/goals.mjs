import { number, span, table } from './format.mjs';
import { WHY_NOT } from './prose.mjs';
import { median, ratio, spread, summary } from './stats.mjs';

/** Returns a row per goal: the goal, the measured value, and whether it is reached. */
export function goals(results) {
  return [...speedGoals(results), ...scaleGoals(results)];
}

/** Returns the table of goals, and below it the reasons for those not reached. */
export function goalTable(rows) {
  const shown = table(
    [
      ['goal', ({ goal }) => goal],
      ['measured', ({ measured }) => measured],
      ['reached', ({ reached }) => (reached ? 'yes' : '**no**')],
    ],
    rows,
  );
  const missed = rows
    .filter(({ reached, why }) => !reached && why)
    .map(({ goal, why }) => `- ${goal}: ${WHY_NOT[why]}`);
  return missed.length > 0 ? `${shown}\n\nNot reached, and why:\n\n${missed.join('\n')}` : shown;
}

function speedGoals({ uncontended: { direct, near, far, counts }, handOver }) {
  const { lock, writes, python, etcd3 } = direct.rounds;
  const added = (id) => spread(far.rounds[id].map((samples, i) => (median(samples) - median(near.rounds[id][i])) / 4));
  const trips = added('lock');
  const against = (whose, peer, limit) => {
    const times = ratio(peer, lock);
    return {
      goal: `uncontended: cycles per second ÷ ${whose} ≥ ${limit}`,
      measured: `${shown(times)}; two bare writes: ${shown(ratio(peer, writes))}`,
      reached: times.median >= limit,
      why: 'peers',
    };
  };
  return [
    atLeast('uncontended: cycles per second ÷ those of two bare writes', ratio(writes, lock), 0.85, 'floor'),
    against("python-etcd's", python, 1.9),
    against("npm etcd3's", etcd3, 2.5),
    exactly('uncontended: requests and round trips', `${counts.lock.requests} and ${counts.lock.trips}`, '3 and 2'),
    within(
      'uncontended: round trips, as time added by 2 ms each way ÷ 4 ms',
      `${shown(trips)}; two bare writes: ${shown(added('writes'))}`,
      trips.median,
      2.15,
      'trips',
    ),
    atMost(
      'hand-over: time ÷ that of a bare DELETE → event + GET',
      ratio(handOver.direct.rounds.lock, handOver.direct.rounds.event),
      1.3,
      'handOver',
    ),
  ];
}

function scaleGoals({ drain, waiters, idle, debug }) {
  const sizes = Object.keys(drain.direct.bySize);
  const perHandOver = sizes.map((size) => drain.counts.lock[size].perHandOver);
  const [least, most] = [sizes[0], sizes.at(-1)].map((size) => summary(drain.direct.bySize[size].lock).median);
  const { count, keys, sockets, heapEach, inOrder } = waiters.find(({ face }) => face === 'manager');
  const many = `${count} waiters of a \`LockManager\``;
  const alike = ratio(debug.cpu.with, debug.cpu.alike);
  return [
    within(
      'draining: requests per hand-over, any number of waiters',
      perHandOver.map(number).join(', '),
      Math.max(...perHandOver),
      4,
    ),
    within(
      `draining: time per hand-over of ${sizes.at(-1)} waiters ÷ that of ${sizes[0]}`,
      number(most / least),
      most / least,
      3,
      'drain',
    ),
    exactly(`${many}: keys in etcd`, keys, 1),
    within(`${many}: sockets`, sockets, sockets, 2),
    within(`${many}: KiB of heap each`, number(heapEach / 1024), heapEach / 1024, 4),
    exactly(`${many}: served in order`, inOrder, true),
    idleGoal('a held lock: one request per TTL/3', idle.holder, { renewal: idle.thirds }),
    idleGoal(
      'a waiting request: one renewal and one poll per TTL/3',
      idle.waiter,
      { renewal: idle.thirds, poll: idle.thirds },
      ['read'],
    ),
    {
      goal: '`debug` off: CPU time per cycle ÷ that without the calls, no more than that of identical copies',
      measured: `${shown(ratio(debug.cpu.with, debug.cpu.without))}; identical: ${shown(alike)}`,
      reached: ratio(debug.cpu.with, debug.cpu.without).median <= alike.high,
    },
  ];
}

const shown = (of) => `${number(of.median)} (${span(of)})`;
const atLeast = (goal, of, limit, why) => ({
  goal: `${goal} ≥ ${limit}`,
  measured: shown(of),
  reached: of.median >= limit,
  why,
});
const atMost = (goal, of, limit, why) => ({
  goal: `${goal} ≤ ${limit}`,
  measured: shown(of),
  reached: of.median <= limit,
  why,
});
const within = (goal, measured, value, limit, why) => ({
  goal: `${goal} ≤ ${limit}`,
  measured,
  reached: value <= limit,
  why,
});
const exactly = (goal, measured, wanted) => ({ goal: `${goal}: ${wanted}`, measured, reached: measured === wanted });

/** @param besides kinds of requests without a limit, such as the listings that come with polls */
function idleGoal(goal, { kinds }, most, besides = []) {
  const reached = Object.entries(kinds).every(([kind, count]) => besides.includes(kind) || count <= (most[kind] ?? 0));
  const per = Object.entries(kinds).map(([kind, count]) => `${number(count / most.renewal)} × ${kind}`);
  return { goal, measured: per.join(', '), reached };
}

/** Returns the peers that took less time than `Lock`. */
export function lostTo({ titles, rounds }) {
  const mine = rounds.lock.map(median);
  return Object.entries(rounds)
    .filter(([id]) => ['python', 'etcd3', 'etcdctl'].includes(id))
    .map(([id, own]) => ({ id, title: titles[id], share: median(own.map((samples, i) => median(samples) / mine[i])) }))
    .filter(({ share }) => share < 1);
}
