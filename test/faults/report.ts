import type { Outcome } from './campaign.ts';
import { type JudgedLock, ms, wordsFor } from './verdict.ts';
import type { Wait } from './waits.ts';

/** Milliseconds: the limit of a wait without faults. Longer waits are listed one by one. */
const LONG = 1000;

/** Returns the results of a campaign, one line each. */
export function reportOn({ seed, seconds, kinds, leases, stuck }: Outcome, locks: readonly JudgedLock[]): string[] {
  const words = wordsFor(locks);
  const outcomes = locks.map(({ outcome }) => outcome);
  const { faults = [], outages = [] } = outcomes[0] ?? {};
  const events = outcomes.flatMap(({ history }) => history);
  const waits = locks.flatMap((lock) => lock.waits).sort((a, b) => lasting(b) - lasting(a));
  const long = waits.filter((wait) => lasting(wait) > LONG);
  const holders = locks.flatMap(({ outcome, holds }) => holds.map(({ who }) => `${outcome.lock} ${kinds.get(who)}`));
  const happened = (kind: string): number => events.filter((event) => event.kind === kind).length;
  const lost = (set: 'fenced' | 'plain'): string => {
    const results = outcomes.map(({ sets }) => sets[set]);
    return `${sum(results.map((result) => result.lost.length))} of ${sum(results.map(({ written }) => written))}`;
  };
  return [
    `seed ${seed}, ${seconds} s`,
    `acquisitions: ${counted(holders)}`,
    `faults: ${counted(faults.map(({ kind }) => kind))}`,
    `cluster outages: ${outages.length}, longest ${ms(Math.max(0, ...outages.map(lasting)))}`,
    ...waits.slice(0, 1).map((wait) => `longest wait: ${words.wait(wait)}`),
    `waits longer than ${ms(LONG)}: ${long.length} of ${waits.length}`,
    ...long.map((wait) => `  ${words.wait(wait)}`),
    `holds lost: ${happened('lost')}; waits failed: ${happened('failed')}; requests refused by a fence: ${happened('refused')}`,
    `lost updates: ${lost('fenced')} with fencing, ${lost('plain')} without`,
    `lost with fencing, not by a hold of etcdctl without its key: ${sum(locks.map(({ lostUpdates }) => lostUpdates.length))}`,
    `overlaps: ${sum(locks.map(({ overlaps }) => overlaps.length))}`,
    `entries removed by etcd by mistake: ${sum(outcomes.map(({ revoked }) => revoked.length))}`,
    ...locks.flatMap(({ excused }) => excused.map(([one, two]) => `  overlap: ${words.hold(one)}, ${words.hold(two)}`)),
    `holds of etcdctl without its key: ${sum(locks.map(({ keyless }) => keyless.length))}`,
    `contenders that did not quit: ${stuck.length}`,
    `leftover leases: ${leases.length}`,
    `leftover keys: ${sum(outcomes.map(({ leftovers }) => leftovers.length))}`,
    `holds lost too early: ${sum(locks.map(({ early }) => early.length))}`,
  ];
}

const lasting = ({ from, to }: Pick<Wait, 'from' | 'to'>): number => to - from;

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0);

function counted(words: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts]
    .sort()
    .map(([word, count]) => `${word} ${count}`)
    .join(', ');
}
