import { expect, onTestFinished, test } from 'vitest';
import type { Family } from '../../src/cli/job/family.ts';
import { Relay } from '../../src/cli/job/relay.ts';

test('a signal that arrives while the command is being started is relayed', () => {
  const relay = new Relay();
  onTestFinished(() => relay.end());
  process.emit('SIGHUP', 'SIGHUP');
  const sent: string[][] = [];
  const family = { send: (...signals: string[]) => void sent.push(signals) };
  relay.to(family as unknown as Family);
  expect(sent).toEqual([['SIGHUP', 'SIGCONT']]);
});
