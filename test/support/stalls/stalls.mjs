// Measures how long the machine has stalled. Plain JavaScript, because contenders in other processes load this module too.
import { Worker } from 'node:worker_threads';
import { countOnTime, now } from './beat.mjs';

export { now };

const begun = now();
/** On-time milliseconds of this process's event loop: late when the process computes, or waits for a processor. */
const loop = new Float64Array([-1]);
countOnTime(loop, begun, { ref: false });
/** On-time milliseconds of an otherwise idle thread: late when the machine is busy, so that servers wait for a processor too. */
const thread = new Float64Array(new SharedArrayBuffer(8));
thread[0] = -1;
new Worker(new URL('thread.mjs', import.meta.url), { workerData: { counter: thread, begun }, execArgv: [] }).unref();

/** Milliseconds for which one of the two was late, of `since` milliseconds. */
const late = ([onTime], since) => (onTime < 0 ? 0 : Math.max(since - onTime, 0));

export function moment() {
  const at = now();
  return { at, stalled: late(loop, at - begun) + late(thread, at - begun) };
}

export const elapsed = (from, to = moment()) => to.at - from.at - (to.stalled - from.stalled);
