// How long the machine has stood still. Plain JavaScript, because contenders in processes of their own load it, too.
import { Worker } from 'node:worker_threads';
import { countOnTime, now } from './beat.mjs';

export { now };

const begun = now();
/** The event loop of this process: late when the process computes, or waits for a processor. */
const loop = new Float64Array([-1]);
countOnTime(loop, begun, { ref: false });
/** A thread that does nothing else: late when the machine is busy, so that servers wait for a processor, too. */
const thread = new Float64Array(new SharedArrayBuffer(8));
thread[0] = -1;
new Worker(new URL('thread.mjs', import.meta.url), { workerData: { counter: thread, begun }, execArgv: [] }).unref();

/** Milliseconds that one of them was late in so many milliseconds. */
const late = ([onTime], since) => (onTime < 0 ? 0 : Math.max(since - onTime, 0));

export function moment() {
  const at = now();
  return { at, stalled: late(loop, at - begun) + late(thread, at - begun) };
}

export const elapsed = (from, to = moment()) => to.at - from.at - (to.stalled - from.stalled);
