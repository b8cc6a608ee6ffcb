import { describe, expect, test, vi } from 'vitest';
import { PendingWork } from '../../../src/base/pending-work.ts';
import { EtcdConnectionFailed } from '../../../src/errors.ts';
import { type HeldEntry, LossStream } from '../../../src/v3/locks/losses/loss-stream.ts';
import type { LockRequests } from '../../../src/v3/rpc/requests.ts';

const held = (name: string): HeldEntry => ({
  own: { key: `/_locks/${name}/1`, value: name, rank: 1n, clusterId: 'c', granted: 30, sentAt: 0 },
  onLost: vi.fn(),
});

describe('a stream that watches held entries', () => {
  test('reads an entry that is added while the stream pauses after failures, without waiting for the end of the pause', async () => {
    vi.useFakeTimers();
    const pending = new PendingWork(() => new Error('closed'));
    try {
      const readEach = vi.fn(async (_keys: readonly string[]) => {
        throw new EtcdConnectionFailed('no answer');
      });
      const stream = new LossStream({ gateway: { pending }, entries: { readEach } } as unknown as LockRequests);
      stream.add(held('one'));
      stream.restart();
      // After these failures, the pause is 2.5 to 5 s.
      await vi.advanceTimersByTimeAsync(60_000);
      const before = readEach.mock.calls.length;
      while (readEach.mock.calls.length === before) await vi.advanceTimersByTimeAsync(1);
      const [failed, added] = [readEach.mock.calls.length, held('two')];
      stream.add(added);
      stream.restart();
      await vi.advanceTimersByTimeAsync(0);
      expect(readEach.mock.calls.slice(failed)).toEqual([[['/_locks/one/1', added.own.key], expect.anything()]]);
    } finally {
      pending.closing.abort(new Error('the test has ended'));
      await vi.runAllTimersAsync();
      vi.useRealTimers();
    }
  });
});
