import { afterEach, beforeEach, vi } from 'vitest';

/** Milliseconds. */
const BEAT = 10;

export interface BeatClock {
  /** Stops the time until `resume()` or the end of the test. */
  pause(): void;
  resume(): void;
}

/**
 * Makes time pass by beats of the event loop, for every test of a file: a timeout of this process leaves a test as many turns of the
 * loop on a busy machine as on a quiet one. Other processes, such as etcd, keep the real time.
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
