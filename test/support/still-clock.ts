import { onTestFinished, vi } from 'vitest';

/**
 * Stops the clock of this process until the end of the test: no request is sent again because the machine is busy. Other processes,
 * such as etcd, keep the real time.
 */
export function useStillClock(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
}
