import type { Contenders, Verdict } from './contenders.ts';
import { machineClock } from './protocol.ts';

const TTL = 3;
/** Seconds for which the first two hold the lock before they are killed or stopped. */
const WORK = 1.2;
/** Seconds for which the third one has held the lock when the second one continues. */
const LATE = 0.8;
/** Seconds until the third one releases the lock after that. */
const REST = 1;
/** Seconds that an entry takes to expire at most: etcd removes it up to half a second after its TTL. */
const EXPIRY = TTL + 0.5;
/** Seconds for which a contender holds the lock unless it is told to release it. */
const HOLD = 60;

export const ABOUT_CRASH = `the holder writes to a resource; TTL ${TTL} s`;

/** Shows three contenders: the first holder is killed, and the second one stopped until the third one has written. */
export async function showCrash(contenders: Contenders): Promise<Verdict> {
  await contenders.begin(2 * (WORK + EXPIRY) + LATE + REST);
  await contenders.enterInOrder({ ttl: TTL, turns: 1, hold: HOLD });

  const first = await contenders.nextHolder();
  contenders.say(first, `holds the lock, token ${first.token}`);
  await contenders.letHold(first.who, WORK);
  const killed = { who: first.who, at: machineClock() };
  contenders.get(killed.who).kill();
  contenders.timeline.enter(killed.who, 'idle', killed.at);
  contenders.timeline.mark(killed.who, 'killed', killed.at);
  contenders.say(killed, `KILLED (kill -9); its entry expires ${TTL} s after its renewal`, 'red');

  const second = await contenders.nextHolder(first);
  contenders.say(second, `holds the lock, token ${second.token}, ${secondsFrom(killed, second)} s after the kill`);
  await contenders.letHold(second.who, WORK);
  const stopped = { who: second.who, at: machineClock() };
  contenders.get(stopped.who).signal('SIGSTOP');
  contenders.timeline.enter(stopped.who, 'stopped', stopped.at);
  contenders.say(stopped, 'STOPPED (kill -STOP): it cannot renew, and does not know', 'magenta');

  const third = await contenders.nextHolder(first, second);
  contenders.say(third, `holds the lock, token ${third.token}, ${secondsFrom(stopped, third)} s after the stop`);
  await contenders.first(third.who, 'writes');
  await contenders.pause(LATE);
  contenders.say(
    { who: stopped.who, at: machineClock() },
    `CONTINUED (kill -CONT), still with token ${second.token}`,
    'magenta',
  );
  contenders.get(stopped.who).signal('SIGCONT');

  const lost = await contenders.first(stopped.who, 'lost');
  const refused = contenders.events.find(({ who, is }) => who === stopped.who && is === 'refused');
  if (refused) contenders.say(refused, `late write REFUSED by the fence: it has seen token ${third.token}`, 'green');
  contenders.say(lost, 'notices that it lost the lock');
  await contenders.pause(REST);
  contenders.get(third.who).release();
  await contenders.ended();
  const { timeline, summary } = contenders;
  return {
    isGood: timeline.overlaps === 0 && refused !== undefined,
    text: `${summary}, ${refused ? 'the late write was refused' : 'but the late write was not refused'}`,
  };
}

const secondsFrom = (begin: { readonly at: number }, end: { readonly at: number }): string =>
  ((end.at - begin.at) / 1000).toFixed(1);
