import { expect, onTestFinished, test } from 'vitest';
import type { ProcessTree } from '../../../src/cli/job/processes/process-tree.ts';
import { Relay } from '../../../src/cli/job/relay.ts';

test('a signal that arrives while the command is being started is relayed', () => {
  const relay = new Relay();
  onTestFinished(() => relay.end());
  process.emit('SIGHUP', 'SIGHUP');
  const sent: string[][] = [];
  const tree = { send: (...signals: string[]) => void sent.push(signals) };
  relay.to(tree as unknown as ProcessTree);
  expect(sent).toEqual([['SIGHUP', 'SIGCONT']]);
});
