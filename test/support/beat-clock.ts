import { afterEach, beforeEach, vi } from 'vitest';

/** Milliseconds. */
const BEAT = 10;

export interface BeatClock {
  /** Stops the clock until `resume()` or the end of the test. */
  pause(): void;
  resume(): void;
}

/**
 * For every test of a file, advances the clock of this process by 10 ms each time a real 10 ms interval fires: within a
 * timeout, a test gets as many passes of the event loop on a busy machine as on an idle one. Other processes, such as etcd, keep
 * the real time.
 */
export function useBeatClock(): BeatClock {
  let paused = false;
  let beating: NodeJS.Timeout;
  const beat = (): void => {
    if (!paused) vi.advanceTimersByTime(BEAT);
  };
  beforeEach(() => {
    paused = false;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    beating = setInterval(beat, BEAT);
  });
  afterEach(() => {
    clearInterval(beating);
    vi.useRealTimers();
  });
  return {
    pause() {
      paused = true;
    },
    resume() {
      paused = false;
    },
  };
}
