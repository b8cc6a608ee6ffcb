import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Milliseconds between two samples. */
const EVERY = 10;

export function measureStalls() {
  const delays = monitorEventLoopDelay({ resolution: EVERY });
  delays.enable();
  return () => (delays.count === 0 ? 0 : Math.max(0, delays.mean / 1e6 - EVERY) * delays.count);
}
