import type { ContenderEvent, Contenders, Verdict } from './contenders.ts';

/** How often each contender acquires the lock. */
const TURNS = 3;
/** Seconds for which a contender holds the lock each time. */
const HOLD = 0.6;
const TTL = 10;
/** Seconds that a release and the next acquisition take at most, if the machine is not busy. */
const GAP = 0.05;

export const ABOUT_TURNS = `each wants it ${TURNS} times, and holds it for ${HOLD} s`;

/** Shows contenders that take turns. */
export async function showTurns(contenders: Contenders): Promise<Verdict> {
  const waitingSince = new Map<string, number>();
  const holds: ContenderEvent[] = [];
  contenders.onEvent((event) => {
    const { who, is, at, token } = event;
    if (is === 'waits') waitingSince.set(who, at);
    if (is === 'lost') contenders.say(event, 'lost the lock', 'red');
    if (is !== 'holds') return;
    holds.push(event);
    const waited = (at - (waitingSince.get(who) ?? at)) / 1000;
    contenders.say(event, `holds the lock, token ${token}, waited ${waited.toFixed(1)} s`);
  });
  await contenders.begin(contenders.names.length * TURNS * (HOLD + GAP));
  await contenders.enterInOrder({ ttl: TTL, turns: TURNS, hold: HOLD });
  await contenders.ended();
  return verdictOf(contenders, holds);
}

function verdictOf({ timeline, summary }: Contenders, holds: ContenderEvent[]): Verdict {
  const tokens = holds.sort((a, b) => a.at - b.at).map(({ token = '0' }) => BigInt(token));
  const grow = tokens.every((token, i) => token > (tokens[i - 1] ?? -1n));
  return {
    isGood: timeline.overlaps === 0 && grow,
    text: `${summary}, ${grow ? 'each token greater than the one before' : 'but the tokens did not always grow'}`,
  };
}
