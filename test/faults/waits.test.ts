import { describe, expect, test } from 'vitest';
import type { Event, Fault, FaultKind, QueueEvent, Stall } from './history.ts';
import { type Trial, type Wait, waitsIn } from './waits.ts';

/** Seconds: the poll cap is 2 s. */
const TTL = 6;

/** A contender that asks at 0 and holds at `heldAt`, if ever. The value of its entry is its name. */
function contender(who: string, token: number, heldAt?: number): Event[] {
  const asks: Event = { at: 0, who, kind: 'asks', uuid: who };
  return heldAt === undefined ? [asks] : [asks, { at: heldAt, who, kind: 'held', token: String(token) }];
}

function change(at: number, action: QueueEvent['action'], token: number, value: string): QueueEvent {
  return { at, index: at, lock: 'x', rank: BigInt(token), action, value };
}

const fault = (kind: FaultKind, from: number, to: number): Fault => ({ kind, from, to, targets: ['m1'] });
const stall = (who: string, from: number, to: number, stalled: number): Stall => ({
  kind: 'stalled',
  who,
  from,
  to,
  stalled,
});
const died = (at: number, who: string): Event => ({ at, who, kind: 'died' });

function trial(parts: Partial<Trial>): Trial {
  return {
    api: 'v2',
    ttl: TTL,
    history: [],
    queue: [],
    faults: [],
    outages: [],
    stops: [],
    stalls: [],
    judged: () => true,
    ...parts,
  };
}

/** `a` releases the lock after 10 s; `b` waits behind `a` and holds at `heldAt`. */
const handedOver = (heldAt: number | undefined, parts: Partial<Trial> = {}): Trial =>
  trial({
    history: [...contender('a', 1, 10), ...contender('b', 2, heldAt)],
    queue: [
      change(10, 'queued', 1, 'a'),
      change(20, 'queued', 2, 'b'),
      change(10_000, 'removed', 1, 'a'),
      ...(heldAt === undefined ? [] : [change(heldAt + 50, 'removed', 2, 'b')]),
    ],
    ...parts,
  });

/** `b` holds one of two places and is away from 9 s on; `a` releases the other one after 10 s, and `c` holds that at `heldAt`. */
const behindOneAway = (heldAt: number, parts: Partial<Trial>): Trial => {
  const value = (who: string) => `limit:2:id:${who}:1`;
  return trial({
    history: [...contender('a', 1, 10), ...contender('b', 2), ...contender('c', 3, heldAt), ...(parts.history ?? [])],
    queue: [
      ...['a', 'b', 'c'].map((who, i) => change(10 + i, 'queued', i + 1, value(who))),
      change(10_000, 'removed', 1, value('a')),
    ],
    judged: (who) => who === 'c',
    stops: parts.stops ?? [],
    ...(parts.api && { api: parts.api }),
  });
};
const AWAY = [{ who: 'b', from: 9000, to: 15_000 }];

/** `a` is killed after 5 s, and its entry expires at `expiredAt`; `b` waits behind `a` and holds at `heldAt`. */
const afterKill = (expiredAt: number, heldAt: number, parts: Partial<Trial> = {}): Trial =>
  trial({
    history: [...contender('a', 1, 10), died(5000, 'a'), ...contender('b', 2, heldAt)],
    queue: [change(10, 'queued', 1, 'a'), change(20, 'queued', 2, 'b'), change(expiredAt, 'expired', 1, 'a')],
    ...parts,
  });

const isLate = ({ to, due }: Wait): boolean => to > due;
const late = (of: Trial): string[] => waitsIn(of).flatMap((wait) => (isLate(wait) ? [wait.who] : []));

describe('a waiter is on time', () => {
  test.each<[string, Trial]>([
    ['when it acquires the lock within a second', handedOver(10_900)],
    ['when it held the lock before its entry was seen at the head of the queue', handedOver(9990)],
    [
      'when its connection was cut before it was due',
      handedOver(11_600, { faults: [fault('connections cut', 10_700, 10_700)] }),
    ],
    [
      'when one cut follows another before it was due',
      handedOver(12_400, {
        faults: [fault('connections cut', 10_700, 10_700), fault('connections cut', 11_500, 11_500)],
      }),
    ],
    [
      'within a poll cap, when a member that it may poll fell silent',
      handedOver(11_900, { faults: [fault('member paused', 9000, 20_000)] }),
    ],
    [
      'when its poll may have begun just before a silence ended',
      handedOver(11_900, { faults: [fault('answers lost', 5000, 8000)] }),
    ],
    ['when the network is slow', handedOver(11_900, { faults: [fault('network slow', 9000, 20_000)] })],
    ['within 5 s of the end of an outage', handedOver(18_900, { outages: [{ from: 9000, to: 14_000 }] })],
    ['when it was stopped itself', handedOver(17_900, { stops: [{ who: 'b', from: 9000, to: 15_000 }] })],
    [
      'when its process was stalled for as long as it is late',
      handedOver(11_400, { stalls: [stall('b', 9700, 10_200, 300), stall('b', 11_200, 11_700, 200)] }),
    ],
    ['within a poll cap, when the one before it was stopped', behindOneAway(11_900, { stops: AWAY })],
    ['within a poll cap, when the one before it was killed', behindOneAway(11_900, { history: [died(9000, 'b')] })],
    ['within TTL + 2 s of the kill of a holder', afterKill(11_000, 12_900)],
    [
      'when a holder was killed and an outage followed',
      afterKill(13_000, 17_900, { outages: [{ from: 10_000, to: 13_000 }] }),
    ],
    [
      'when a resumed member carried out the last renewal of a killed holder',
      afterKill(13_900, 15_900, { faults: [fault('member paused', 4000, 8000)] }),
    ],
    [
      'when it was killed before it was due',
      handedOver(undefined, { history: [...contender('a', 1, 10), ...contender('b', 2), died(10_500, 'b')] }),
    ],
  ])('%s', (_, of) => {
    expect(late(of)).toEqual([]);
  });

  test('when it was killed before its entry was at the head of the queue', () => {
    const history = [...contender('a', 1, 10), ...contender('b', 2), died(9000, 'b')];
    expect(late(handedOver(undefined, { history }))).toEqual([]);
  });

  test('within a second, when the entry before it expired long after a stop of its contender', () => {
    const stops = [{ who: 'a', from: 100, to: 200 }];
    const history = [...contender('a', 1, 10), ...contender('b', 2, 12_900)];
    const queue = [change(10, 'queued', 1, 'a'), change(20, 'queued', 2, 'b'), change(12_000, 'expired', 1, 'a')];
    expect(late(trial({ history, queue, stops }))).toEqual([]);
  });

  test('when it is not a waiter of this package', () => {
    expect(late(handedOver(undefined, { judged: (who) => who === 'a' }))).toEqual([]);
  });

  test('when it removed its entry instead', () => {
    const queue = [
      change(10, 'queued', 1, 'a'),
      change(20, 'queued', 2, 'b'),
      change(10_000, 'removed', 1, 'a'),
      change(10_500, 'removed', 2, 'b'),
    ];
    expect(late(trial({ history: [...contender('a', 1, 10), ...contender('b', 2)], queue }))).toEqual([]);
  });
});

describe('a waiter is late', () => {
  test.each<[string, Trial]>([
    ['when there was no fault', handedOver(11_100)],
    ['when it never acquires the lock', handedOver(undefined)],
    [
      'more than a second after its connection was cut',
      handedOver(11_800, { faults: [fault('connections cut', 10_700, 10_700)] }),
    ],
    ['when its connection was cut long before', handedOver(11_100, { faults: [fault('connections cut', 5000, 5000)] })],
    [
      'when its connection was cut after it was due',
      handedOver(11_500, { faults: [fault('connections cut', 11_100, 11_100)] }),
    ],
    [
      'more than a poll cap after it came to the head, when a member was silent',
      handedOver(12_100, { faults: [fault('member paused', 9000, 20_000)] }),
    ],
    ['when a silence had ended long before', handedOver(11_100, { faults: [fault('answers lost', 2000, 6900)] })],
    ['more than 5 s after the end of an outage', handedOver(19_100, { outages: [{ from: 9000, to: 14_000 }] })],
    ['when an outage had ended more than 5 s before', handedOver(11_100, { outages: [{ from: 1000, to: 4900 }] })],
    ['when only another contender was stopped', handedOver(11_100, { stops: [{ who: 'c', from: 9000, to: 15_000 }] })],
    [
      'when its process was stalled for a shorter time than it is late',
      handedOver(11_400, { stalls: [stall('b', 10_000, 10_500, 300)] }),
    ],
    ['when its process was stalled before the wait', handedOver(11_400, { stalls: [stall('b', 9300, 9800, 500)] })],
    ['when its process was stalled after the wait', handedOver(11_400, { stalls: [stall('b', 11_500, 12_000, 500)] })],
    ['when only another contender was stalled', handedOver(11_400, { stalls: [stall('c', 10_000, 10_500, 500)] })],
    [
      'when it counts as stalled because it was stopped, and is late after that',
      handedOver(18_100, {
        stops: [{ who: 'b', from: 9000, to: 15_000 }],
        stalls: [stall('b', 8900, 15_100, 12_000)],
      }),
    ],
    ['more than TTL + 2 s after the kill of a holder', afterKill(11_000, 13_100)],
    ['when the entry of a killed holder expired too late', afterKill(13_100, 13_110)],
    [
      'when only other contenders were stopped and killed',
      handedOver(11_100, { faults: [fault('contender stopped', 9000, 20_000), fault('contender killed', 9000, 9000)] }),
    ],
  ])('%s', (_, of) => {
    expect(late(of)).toEqual(['b']);
  });

  test.each<[string, Trial]>([
    ['a poll cap after the one before it was stopped', behindOneAway(12_100, { stops: AWAY })],
    [
      'a second, when the one before it ran again',
      behindOneAway(11_100, { stops: [{ who: 'b', from: 900, to: 9000 }] }),
    ],
    [
      'a second, when one behind it was stopped',
      behindOneAway(11_100, { stops: [{ who: 'd', from: 900, to: 20_000 }] }),
    ],
    ['a second on etcd v3, where its watch covers all before it', behindOneAway(11_100, { stops: AWAY, api: 'v3' })],
  ])('more than %s', (_, of) => {
    expect(late(of)).toEqual(['c']);
  });

  test('when it was killed only after it was due', () => {
    const history = [...contender('a', 1, 10), ...contender('b', 2), died(11_100, 'b')];
    expect(late(handedOver(undefined, { history }))).toEqual(['b']);
  });

  test('more than TTL + 2 s after the stop of a holder that is still stopped', () => {
    const stops = [{ who: 'a', from: 5000, to: 20_000 }];
    const history = [...contender('a', 1, 10), ...contender('b', 2, 13_100)];
    const queue = [change(10, 'queued', 1, 'a'), change(20, 'queued', 2, 'b'), change(12_900, 'expired', 1, 'a')];
    expect(late(trial({ history, queue, stops }))).toEqual(['b']);
  });

  test('when its entry stays at the head of the queue although its call has failed', () => {
    const failed: Event = { at: 10_100, who: 'b', kind: 'failed', why: 'timed out' };
    const of = handedOver(undefined, { history: [...contender('a', 1, 10), ...contender('b', 2), failed] });
    expect(late(of)).toEqual(['b']);
  });
});

test('a wait lists the reasons for its later due time in order', () => {
  const faults = [fault('connections cut', 10_700, 10_700), fault('leader killed', 11_200, 13_000)];
  const outages = [{ from: 11_200, to: 13_000 }];
  const [, wait] = waitsIn(handedOver(14_000, { faults, outages }));
  expect(wait).toEqual({
    who: 'b',
    rank: 2n,
    from: 10_000,
    to: 14_000,
    due: 18_000,
    why: ['connections cut (m1)', 'no write for 1800 ms'],
  });
});

test('a fault that began after the end of a wait is no reason for it', () => {
  const faults = [fault('member paused', 9000, 20_000), fault('leader killed', 10_600, 13_000)];
  const [, wait] = waitsIn(handedOver(10_500, { faults, outages: [{ from: 10_600, to: 13_000 }] }));
  expect(wait).toMatchObject({ due: 12_000, why: ['member paused (m1)'] });
});

test('waitsIn() throws for an entry that no contender asked for', () => {
  expect(() =>
    waitsIn(trial({ queue: [change(10, 'queued', 1, 'nobody'), change(20, 'removed', 1, 'nobody')] })),
  ).toThrow('no contender asked');
});
