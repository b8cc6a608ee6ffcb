import { isDeepStrictEqual } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { scenarios } from '../../../compat/transcript.ts';
import { startEtcd } from '../../support/etcd.ts';
import { entriesBelow } from '../../support/gateway.ts';
import { between, rowsOf } from '../../support/readme.ts';
import { until } from '../../support/until.ts';
import { Asked } from '../differential/exchange.ts';
import { DIFFERENCES, type Difference } from './differences.ts';
import { replay } from './replay.ts';
import { useBridge } from './use-bridge.ts';

test('a bridge answers the recorded requests of python-etcd as etcd v2 did, except for the listed differences', async () => {
  const etcd = await startEtcd();
  onTestFinished(() => etcd.stop());
  const serve = async (lockPrefix: string): Promise<Asked> => {
    const asked = new Asked((await useBridge({ endpoints: etcd.url, lockPrefix })).url);
    onTestFinished(() => asked.close());
    return asked;
  };
  const [usual, custom] = [await serve('/_locks'), await serve('/apps/locks')];
  const serverOf = (path: string) => (path.startsWith('/v2/keys/apps/') ? custom : usual);
  const untilGone = (directory: string, number: bigint) =>
    until(
      () => entriesBelow(`${directory}/`, etcd.url),
      (entries) => entries.every(({ rank }) => rank !== number),
    );
  const changing = DIFFERENCES.filter(({ change }) => change);
  const seen = new Set<Difference>();
  let answered = 0;
  for (const scenario of scenarios)
    for (const { recorded, theirs, ours } of await replay(scenario, serverOf, untilGone)) {
      const { method, path } = recorded.request;
      let expected = theirs;
      for (const difference of changing) {
        const changed = difference.change?.(expected, recorded.request) ?? expected;
        if (!isDeepStrictEqual(changed, expected)) seen.add(difference);
        expected = changed;
      }
      expect.soft(ours, `${scenario.scenario}: ${method} ${path}`).toEqual(expected);
      answered += 1;
    }
  expect(answered).toBe(scenarios.flatMap(({ exchanges }) => exchanges).length);
  // Otherwise a difference may be listed that is none any more.
  expect(changing.filter((difference) => !seen.has(difference))).toEqual([]);
});

test('docs/bridge.md lists all differences', () => {
  const rows = rowsOf(between('docs/bridge.md', '## What differs', '## Fencing tokens'));
  expect(rows).toEqual(DIFFERENCES.map(({ etcd, bridge }) => [etcd, bridge]));
});
