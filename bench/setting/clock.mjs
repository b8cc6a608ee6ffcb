/** Runs the work; returns its duration in milliseconds, on the monotonic clock. */
export async function clocked(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
