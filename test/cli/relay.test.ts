import { expect, onTestFinished, test } from 'vitest';
import type { Job } from '../../src/cli/job/job.ts';
import { Relay } from '../../src/cli/job/relay.ts';

test('a signal that comes while the job is being started is not lost', () => {
  const relay = new Relay();
  onTestFinished(() => relay.end());
  process.emit('SIGHUP', 'SIGHUP');
  const sent: string[][] = [];
  const family = { send: (...signals: string[]) => void sent.push(signals) };
  relay.to({ family } as unknown as Job);
  expect(sent).toEqual([['SIGHUP', 'SIGCONT']]);
});
