import type { Outcome } from './campaign.ts';
import { judge } from './checker.ts';
import { type Hold, holdsIn } from './holds.ts';
import { answeredLate, KEPT, lostEarly } from './promises.ts';
import { type Wait, waitsIn } from './waits.ts';

export interface Verdict {
  /** What must not be, one line each. */
  readonly broken: readonly string[];
  /** What there was, one line each. */
  readonly report: readonly string[];
}

/** Waits worth telling of: longer than nothing in the way would allow. */
const LONG = 1000;

/** Holds a campaign to its limits. */
export function verdictOn({ locks, kinds, stuck, crashes, seed, seconds }: Outcome): Verdict {
  const trials = locks.map((trial) => {
    const { lock, history, stops, outages, ttl, judged, queue, sets, leftovers } = trial;
    const holds = holdsIn(history).filter(({ from }) => from > 0);
    const { overlaps, disorder, waiting } = judge(history, stops);
    const own = holds.filter(({ who }) => judged(who));
    const early = ttl === KEPT.ttl ? lostEarly(own, outages, stops) : [];
    return { lock, holds, overlaps, disorder, waiting, early, queue, sets, leftovers, waits: waitsIn(trial), trial };
  });
  const start = Math.min(...locks.flatMap(({ history }) => history.map(({ at }) => at)));
  const at = (moment: number): string => `${((moment - start) / 1000).toFixed(2)} s`;
  const tell = ({ who, token, from, to }: Hold): string => `${who} ${at(from)}–${at(to)} (${token})`;
  const tellWait = (lock: string, { who, token, from, to, due, why }: Wait): string =>
    `${lock}: ${who} waited ${ms(to - from)} from ${at(from)} (due after ${ms(due - from)}; ${token}): ${why.join('; ') || 'nothing in the way'}`;

  const broken = [
    ...crashes.map((crash) => `crashed: ${crash}`),
    ...stuck.map((who) => `stuck: ${who}`),
    ...trials.flatMap(({ lock, overlaps, disorder, waiting, early, waits, sets, leftovers, trial }) => [
      ...overlaps.map(([first, second]) => `${lock}: ${tell(first)} overlaps ${tell(second)}`),
      ...disorder.map(([first, second]) => `${lock}: ${tell(first)} came before ${tell(second)}`),
      ...waiting.map((who) => `${lock}: ${who} waits at the end`),
      ...early.map((hold) => `${lock}: ${tell(hold)} was lost too early`),
      ...waits.filter(({ to, due }) => to > due).map((wait) => `late: ${tellWait(lock, wait)}`),
      ...answeredLate(trial.history, trial.stops).map(
        ({ who, timeout, from, to }) =>
          `${lock}: ${who} gave ${timeout} s and was answered after ${ms(to - from)}, at ${at(to)}`,
      ),
      ...sets.fenced.lost.map((addition) => `${lock}: lost in spite of fencing: ${addition}`),
      ...leftovers.map((key) => `left over: ${key}`),
    ]),
  ];

  const waits = trials.flatMap(({ lock, waits }) => waits.map((wait) => ({ lock, wait })));
  const longest = waits.toSorted((a, b) => lasting(b.wait) - lasting(a.wait));
  const faults = locks[0]?.faults ?? [];
  const outages = (locks[0]?.outages ?? []).map(({ from, to }) => to - from).sort((a, b) => b - a);
  const events = locks.flatMap(({ history }) => history);
  const total = (set: 'fenced' | 'plain'): string =>
    `${trials.reduce((sum, { sets }) => sum + sets[set].lost.length, 0)} of ${trials.reduce((sum, { sets }) => sum + sets[set].written, 0)}`;
  const count = (kind: string): number => events.filter((event) => event.kind === kind).length;
  const report = [
    `seed ${seed}, ${seconds} s`,
    `acquisitions: ${counted(trials.flatMap(({ lock, holds }) => holds.map(({ who }) => `${lock} ${kinds.get(who)}`)))}`,
    `faults: ${counted(faults.map(({ kind }) => kind))}`,
    `outages of the cluster: ${outages.length}, the longest ${ms(outages[0] ?? 0)}`,
    ...longest.slice(0, 1).map(({ lock, wait }) => `longest wait: ${tellWait(lock, wait)}`),
    `waits longer than ${ms(LONG)}: ${waits.filter(({ wait }) => lasting(wait) > LONG).length} of ${waits.length}`,
    ...longest
      .filter(({ wait }) => lasting(wait) > LONG)
      .slice(1, 10)
      .map(({ lock, wait }) => `  ${tellWait(lock, wait)}`),
    `holds lost: ${count('lost')}, waits failed: ${count('failed')}, refused by a fence: ${count('refused')}`,
    `overlaps: ${trials.flatMap(({ overlaps }) => overlaps).length}`,
    `lost updates: ${total('fenced')} with fencing, ${total('plain')} without`,
    `stuck waiters: ${stuck.length}`,
    `keys left over: ${trials.flatMap(({ leftovers }) => leftovers).length}`,
    `holds that ended too early: ${trials.flatMap(({ early }) => early).length}`,
  ];
  return { broken, report };
}

const lasting = ({ from, to }: Wait): number => to - from;

const ms = (time: number): string => `${Math.round(time)} ms`;

function counted(words: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts]
    .sort()
    .map(([word, count]) => `${word} ${count}`)
    .join(', ');
}
