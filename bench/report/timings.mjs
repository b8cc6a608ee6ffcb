import { number, span, table } from './format.mjs';
import { ratio, summary } from './stats.mjs';

const OURS = { lock: 'Lock', manager: 'LockManager' };

/**
 * Returns a table of contestants.
 * @param floor id of the contestant that is the lower bound for the others
 * @param counts requests and round trips by id, if counted
 * @param raftWrites raft writes by id, if counted
 * @param own id of the contestant of this package that the others are compared with
 */
export function timings({ titles, rounds }, { floor, counts, raftWrites, unit = 'cycle', own: ours = 'lock' }) {
  const rows = Object.entries(rounds).map(([id, own]) => ({ id, title: titles[id], own, ...summary(own) }));
  const columns = [
    ['', ({ title }) => title],
    [`ms per ${unit}, median`, (row) => number(row.median)],
    ['medians of rounds', span],
    ['p99', ({ own, p99 }) => (own.some((samples) => samples.length > 1) ? number(p99) : '–')],
    ['per second', (row) => number(1000 / row.median)],
    [`time ÷ that of \`${OURS[ours]}\``, ({ own }) => withSpan(ratio(own, rounds[ours]))],
  ];
  if (floor) columns.push(['time ÷ floor', ({ own }) => withSpan(ratio(own, rounds[floor]))]);
  if (counts)
    columns.push(
      ['requests', ({ id }) => counts[id]?.requests ?? '–'],
      ['round trips', ({ id }) => counts[id]?.trips ?? '–'],
    );
  if (raftWrites) columns.push(['raft writes', ({ id }) => number(raftWrites[id])]);
  return table(columns, rows);
}

const withSpan = (of) => `${number(of.median)} (${span(of)})`;

/** Returns a table by the size of the queue. */
export function drains({ titles, bySize }, counts) {
  const rows = Object.entries(bySize).flatMap(([size, rounds]) =>
    Object.entries(rounds).map(([id, own]) => ({ size, id, ...summary(own), counted: counts?.[id]?.[size] })),
  );
  return table(
    [
      ['', ({ id }) => titles[id]],
      ['waiters', ({ size }) => size],
      ['ms per hand-over, median', (row) => number(row.median)],
      ['rounds', span],
      ['requests per hand-over', ({ counted }) => number(counted?.perHandOver)],
      ['bytes per hand-over', ({ counted }) => number(counted?.bytesPerHandOver)],
      ['sockets', ({ counted }) => counted?.sockets ?? '–'],
    ],
    rows,
  );
}

export const waiterCosts = (rows) =>
  table(
    [
      ['', ({ title }) => title],
      ['waiters', ({ count }) => count],
      ['keys', ({ keys }) => keys],
      ['sockets', ({ sockets }) => sockets],
      ['heap each, KiB', ({ heapEach }) => number(heapEach && heapEach / 1024)],
      ['resident each, KiB', ({ residentEach }) => number(residentEach / 1024)],
      ['CPU ms each to wait', ({ cpuEach }) => number(cpuEach)],
      ['CPU ms each to be served', ({ cpuServedEach }) => number(cpuServedEach)],
      ['requests each, in all', ({ requestsEach }) => number(requestsEach)],
      ['served in order', ({ inOrder }) => inOrder ?? '–'],
    ],
    rows,
  );

export function idleCosts({ holder, waiter }) {
  const kinds = ['renewal', 'poll', 'read', 'append', 'removal', 'other'];
  const row = (title, { perThird }) => [title, perThird];
  return table(
    [['requests per TTL/3', ([title]) => title], ...kinds.map((kind) => [kind, ([, per]) => number(per[kind] ?? 0)])],
    [row('a held lock', holder), row('a waiting request', waiter)],
  );
}
