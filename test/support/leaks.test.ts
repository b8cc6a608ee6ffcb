import { expect, onTestFinished, test } from 'vitest';
import { atDeadline, Deadline } from '../../src/base/time.ts';
import { Timeout } from '../../src/http/timeout.ts';
import { trackTimers } from './leaks.ts';

test('trackTimers() counts timers of the package until they fire or are cleared, and no other timers', async () => {
  const timers = trackTimers();
  onTestFinished(() => timers.stop());
  const own = setTimeout(() => {}, 60_000);
  expect(timers.live).toBe(0);
  const cancel = atDeadline(Deadline.after(60), () => {});
  const timeout = Timeout.run(60, () => {});
  expect(timers.live).toBe(2);
  cancel();
  timeout.pause();
  expect(timers.live).toBe(0);
  await new Promise<void>((resolve) => {
    atDeadline(Deadline.after(0.01), resolve);
    expect(timers.live).toBe(1);
  });
  expect(timers.live).toBe(0);
  clearTimeout(own);
});
