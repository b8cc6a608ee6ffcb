import type { LockOutcome, Outcome } from './campaign.ts';
import { judge, type Verdict } from './checker.ts';
import type { Event } from './history.ts';
import { type Hold, holdsIn } from './holds.ts';
import { holdingByKey, isLostByKeyless, keylessIn } from './keyless.ts';
import { type Answer, answeredLate, KEPT, lostEarly } from './promises.ts';
import { isHoldOf, type Wait, waitsIn } from './waits.ts';

/** One lock of a campaign with its verdict. */
export interface JudgedLock extends Verdict {
  readonly outcome: LockOutcome;
  readonly holds: readonly Hold[];
  readonly waits: readonly Wait[];
  /** Holds that were lost too early. */
  readonly early: readonly Hold[];
  /** Calls that ended too late. */
  readonly late: readonly Answer[];
  /** Overlaps because etcd had removed the entry of the earlier hold by mistake. */
  readonly excused: readonly (readonly [Hold, Hold])[];
  /** Holds of `etcdctl lock` without its key. */
  readonly keyless: readonly Event[];
  /** Fenced updates that were lost, except those because of a hold of `etcdctl lock` without its key. */
  readonly lostUpdates: readonly string[];
}

export function judgeLock(outcome: LockOutcome): JudgedLock {
  const { api, history, queue, stops, outages, ttl, judged, revoked, sets } = outcome;
  const keyless = keylessIn(history, queue);
  const judgedHistory = holdingByKey(history, queue);
  const holds = holdsIn(judgedHistory).filter(({ from, to }) => from < to);
  const { overlaps, ...verdict } = judge(judgedHistory, stops);
  const isExcused = ([{ token }]: readonly [Hold, Hold]): boolean =>
    revoked.some(({ rank, index }) => isHoldOf(token, { rank, removed: index }, api));
  return {
    ...verdict,
    overlaps: overlaps.filter((pair) => !isExcused(pair)),
    excused: overlaps.filter(isExcused),
    keyless,
    lostUpdates: sets.fenced.lost.filter((addition) => !isLostByKeyless(addition, history, keyless)),
    outcome,
    holds,
    waits: waitsIn(outcome),
    early:
      ttl === KEPT.ttl
        ? lostEarly(
            holds.filter(({ who }) => judged(who)),
            outages,
            stops,
          )
        : [],
    late: answeredLate(history, stops),
  };
}

/** Returns the promises that a campaign broke, one line each. */
export function brokenIn({ crashes, leases, stuck }: Outcome, locks: readonly JudgedLock[]): string[] {
  const words = wordsFor(locks);
  return [
    ...crashes.map((crash) => `crashed: ${crash}`),
    ...stuck.map((who) => `did not quit: ${who}`),
    ...locks.flatMap(({ outcome: { leftovers }, ...found }) => [
      ...found.overlaps.map(([first, second]) => `overlap: ${words.hold(first)}, ${words.hold(second)}`),
      ...found.disorder.map(([first, second]) => `token not greater: ${words.hold(first)}, ${words.hold(second)}`),
      ...found.waiting.map((who) => `still waiting at the end: ${who}`),
      ...found.early.map((hold) => `hold lost too early: ${words.hold(hold)}`),
      ...found.waits.filter(({ to, due }) => to > due).map((wait) => `waited too long: ${words.wait(wait)}`),
      ...found.late.map((answer) => `call ended too late: ${words.answer(answer)}`),
      ...found.lostUpdates.map((addition) => `update lost despite fencing: ${addition}`),
      ...leftovers.map((key) => `leftover key: ${key}`),
    ]),
    ...leases.map((id) => `leftover lease: ${id}`),
  ];
}

/** Returns texts for holds, waits and calls. Times count from the first event. */
export function wordsFor(locks: readonly JudgedLock[]) {
  const start = Math.min(...locks.flatMap(({ outcome }) => outcome.history.map(({ at }) => at)));
  const at = (moment: number): string => `${((moment - start) / 1000).toFixed(2)} s`;
  return {
    hold: ({ who, token, from, to }: Hold): string => `${who} with token ${token} from ${at(from)} to ${at(to)}`,
    wait: ({ who, rank, from, to, due, why }: Wait): string => {
      const reasons = why.length === 0 ? 'no relevant fault' : why.join('; ');
      return `${who} with entry ${rank} for ${ms(to - from)} from ${at(from)}, due after ${ms(due - from)}: ${reasons}`;
    },
    answer: ({ who, timeout, from, to }: Answer): string =>
      `${who} after ${ms(to - from)} at ${at(to)}, timeout ${timeout} s`,
  };
}

export const ms = (time: number): string => `${Math.round(time)} ms`;
