import { describe, expect, test } from 'vitest';
import { differenceIn, differences } from './differences.ts';
import { replays } from './replays.ts';
import { Stage } from './stage.ts';
import { recordedHistories, scenarios } from './transcript.ts';

describe('our Lock makes the same appends and queue states as a recording of python-etcd', () => {
  for (const scenario of scenarios) {
    const title = scenario.scenario;
    const difference = differenceIn(title);
    test(difference ? `${title} (differs on purpose: ${difference.says})` : title, async () => {
      const replay = difference?.replay ?? replays[title];
      if (replay === undefined) throw new Error(`no replay of the scenario ${JSON.stringify(title)}`);
      const python = recordedHistories(scenario);
      const stage = await Stage.open();
      await replay(stage);
      expect(stage.histories()).toEqual(difference ? difference.expected(python) : python);
    });
  }
});

test('every replay belongs to one scenario of the recording', () => {
  const replayed = [...Object.keys(replays), ...Object.keys(differences)];
  expect(replayed.sort()).toEqual(scenarios.map(({ scenario }) => scenario).sort());
});

// The test above derives its expectations from the recording; these were read from it by hand.
test('recordedHistories() returns the queue states of the recording', () => {
  const entry = (key: number, ttl: number | null = 60) => ({ key, owner: 'ABC'[key - 1], ttl });
  const statesOf = (title: string, path: string) => {
    const scenario = scenarios.find((one) => one.scenario === title);
    return scenario && recordedHistories(scenario)[path]?.states;
  };
  expect(statesOf('acquire twice on one Lock renews the TTL', '/_locks/s2')).toEqual([[entry(1)], [entry(1, 90)], []]);
  expect(statesOf('three contenders, the middle one gives up by release', '/_locks/s6')).toEqual([
    [entry(1)],
    [entry(1), entry(2)],
    [entry(1), entry(2), entry(3)],
    [entry(1), entry(3)],
    [entry(3)],
    [],
  ]);
  expect(statesOf('a waiter whose own key expires while it waits', '/_locks/s9')).toEqual([
    [entry(1)],
    [entry(1), entry(2, 10)],
    [entry(1)],
    [],
  ]);
  expect(statesOf('owner whose key expires: waiter takes over on the expire event', '/_locks/s10')).toEqual([
    [entry(1, 10)],
    [entry(1, 10), entry(2)],
    [entry(2)],
    [],
  ]);
  expect(statesOf('lock_ttl=0', '/_locks/s12')).toEqual([[entry(1, 0)], []]);
  expect(statesOf('context manager: no TTL', '/_locks/s11')).toEqual([[entry(1, null)], []]);
});
