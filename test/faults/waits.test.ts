import { describe, expect, test } from 'vitest';
import type { Event, Fault, FaultKind, QueueEvent } from './history.ts';
import { type Trial, type Wait, waitsIn } from './waits.ts';

/** Its poll cap is 2 s. */
const TTL = 6;

/** One who asks at 0 and holds then, if ever. Its entry carries its name. */
function contender(who: string, token: number, heldAt?: number): Event[] {
  const asks: Event = { at: 0, who, kind: 'asks', uuid: who };
  return heldAt === undefined ? [asks] : [asks, { at: heldAt, who, kind: 'held', token: String(token) }];
}

function change(at: number, action: QueueEvent['action'], token: number, value: string): QueueEvent {
  return { at, index: at, lock: 'x', token: BigInt(token), action, value };
}

const fault = (kind: FaultKind, from: number, to: number): Fault => ({ kind, from, to, targets: ['m1'] });
const died = (at: number, who: string): Event => ({ at, who, kind: 'died' });

function trial(parts: Partial<Trial>): Trial {
  return { ttl: TTL, history: [], queue: [], faults: [], outages: [], stops: [], judged: () => true, ...parts };
}

/** `a` gives the lock back after 10 s; `b` stands behind it and holds then. */
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

/** `a` is killed after 5 s, and its entry expires then; `b` stands behind it and holds then. */
const bereaved = (expiredAt: number, heldAt: number, parts: Partial<Trial> = {}): Trial =>
  trial({
    history: [...contender('a', 1, 10), died(5000, 'a'), ...contender('b', 2, heldAt)],
    queue: [change(10, 'queued', 1, 'a'), change(20, 'queued', 2, 'b'), change(expiredAt, 'expired', 1, 'a')],
    ...parts,
  });

const isLate = ({ to, due }: Wait): boolean => to > due;
const late = (of: Trial): string[] => waitsIn(of).flatMap((wait) => (isLate(wait) ? [wait.who] : []));

describe('a waiter is in time', () => {
  test.each<[string, Trial]>([
    ['where it goes on within a second', handedOver(10_900)],
    ['where it held before it became known that it was first', handedOver(9990)],
    [
      'where its socket was cut while it had time left',
      handedOver(11_600, { faults: [fault('connections cut', 10_700, 10_700)] }),
    ],
    [
      'where one cut comes after the other',
      handedOver(12_400, {
        faults: [fault('connections cut', 10_700, 10_700), fault('connections cut', 11_500, 11_500)],
      }),
    ],
    [
      'where a member it may poll fell silent: within a poll',
      handedOver(11_900, { faults: [fault('member paused', 9000, 20_000)] }),
    ],
    [
      'where it may have begun to poll just before a silence ended',
      handedOver(11_900, { faults: [fault('answers lost', 5000, 8000)] }),
    ],
    ['where everything is slow', handedOver(11_900, { faults: [fault('network slow', 9000, 20_000)] })],
    [
      'where the cluster could not write: within 5 s after it could',
      handedOver(18_900, { outages: [{ from: 9000, to: 14_000 }] }),
    ],
    ['where it was stopped itself', handedOver(17_900, { stops: [{ who: 'b', from: 9000, to: 15_000 }] })],
    ['where a holder died: within its TTL and 2 s', bereaved(11_000, 12_900)],
    ['where a holder died beside an outage', bereaved(13_000, 17_900, { outages: [{ from: 10_000, to: 13_000 }] })],
    [
      'where a member carried out the last renewal of the dead as it woke',
      bereaved(13_900, 15_900, { faults: [fault('member paused', 4000, 8000)] }),
    ],
    [
      'where it was killed before it went on',
      handedOver(undefined, { history: [...contender('a', 1, 10), ...contender('b', 2), died(10_500, 'b')] }),
    ],
  ])('%s', (_, of) => {
    expect(late(of)).toEqual([]);
  });

  test('where it was dead before it was first', () => {
    const history = [...contender('a', 1, 10), ...contender('b', 2), died(9000, 'b')];
    expect(late(handedOver(undefined, { history }))).toEqual([]);
  });

  test('where the one before it expired that had been stopped long before', () => {
    const stops = [{ who: 'a', from: 100, to: 200 }];
    const history = [...contender('a', 1, 10), ...contender('b', 2, 12_900)];
    const queue = [change(10, 'queued', 1, 'a'), change(20, 'queued', 2, 'b'), change(12_000, 'expired', 1, 'a')];
    expect(late(trial({ history, queue, stops }))).toEqual([]);
  });

  test('where it was no waiter of this package', () => {
    expect(late(handedOver(undefined, { judged: (who) => who === 'a' }))).toEqual([]);
  });

  test('where it gave its place up instead', () => {
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
    ['where nothing stood in its way', handedOver(11_100)],
    ['where it never goes on', handedOver(undefined)],
    ['a second after its socket was cut', handedOver(11_800, { faults: [fault('connections cut', 10_700, 10_700)] })],
    ['where its socket was cut long before', handedOver(11_100, { faults: [fault('connections cut', 5000, 5000)] })],
    [
      'where its socket was cut when it was late already',
      handedOver(11_500, { faults: [fault('connections cut', 11_100, 11_100)] }),
    ],
    ['a poll after a member fell silent', handedOver(12_100, { faults: [fault('member paused', 9000, 20_000)] })],
    ['where a silence had ended long before', handedOver(11_100, { faults: [fault('answers lost', 2000, 6900)] })],
    ['5 s after the cluster could write again', handedOver(19_100, { outages: [{ from: 9000, to: 14_000 }] })],
    ['where an outage was over 5 s before', handedOver(11_100, { outages: [{ from: 1000, to: 4900 }] })],
    ['where somebody else was stopped', handedOver(11_100, { stops: [{ who: 'c', from: 9000, to: 15_000 }] })],
    ['its TTL and 2 s after a holder died', bereaved(11_000, 13_100)],
    ['where the entry of the dead itself stayed too long', bereaved(13_100, 13_110)],
    [
      'where contenders were stopped and killed elsewhere',
      handedOver(11_100, { faults: [fault('contender stopped', 9000, 20_000), fault('contender killed', 9000, 9000)] }),
    ],
  ])('%s', (_, of) => {
    expect(late(of)).toEqual(['b']);
  });

  test('where it is killed only when it was late already', () => {
    const history = [...contender('a', 1, 10), ...contender('b', 2), died(11_100, 'b')];
    expect(late(handedOver(undefined, { history }))).toEqual(['b']);
  });

  test('its TTL and 2 s after a holder was stopped that is stopped still', () => {
    const stops = [{ who: 'a', from: 5000, to: 20_000 }];
    const history = [...contender('a', 1, 10), ...contender('b', 2, 13_100)];
    const queue = [change(10, 'queued', 1, 'a'), change(20, 'queued', 2, 'b'), change(12_900, 'expired', 1, 'a')];
    expect(late(trial({ history, queue, stops }))).toEqual(['b']);
  });

  test('where its place waits at the head though it has failed', () => {
    const failed: Event = { at: 10_100, who: 'b', kind: 'failed', why: 'timed out' };
    const of = handedOver(undefined, { history: [...contender('a', 1, 10), ...contender('b', 2), failed] });
    expect(late(of)).toEqual(['b']);
  });
});

test('a wait tells what moved it on, in turn', () => {
  const faults = [fault('connections cut', 10_700, 10_700), fault('leader killed', 11_200, 13_000)];
  const outages = [{ from: 11_200, to: 13_000 }];
  const [, wait] = waitsIn(handedOver(14_000, { faults, outages }));
  expect(wait).toEqual({
    who: 'b',
    token: 2n,
    from: 10_000,
    to: 14_000,
    due: 18_000,
    why: ['connections cut (m1)', 'no write for 1800 ms'],
  });
});

test('what began only after a wait was over is no reason for it', () => {
  const faults = [fault('member paused', 9000, 20_000), fault('leader killed', 10_600, 13_000)];
  const [, wait] = waitsIn(handedOver(10_500, { faults, outages: [{ from: 10_600, to: 13_000 }] }));
  expect(wait).toMatchObject({ due: 12_000, why: ['member paused (m1)'] });
});

test('an entry that nobody asked for is told', () => {
  expect(() =>
    waitsIn(trial({ queue: [change(10, 'queued', 1, 'nobody'), change(20, 'removed', 1, 'nobody')] })),
  ).toThrow('nobody asked');
});
