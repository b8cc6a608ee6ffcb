import { randomUUID } from 'node:crypto';
import { alternate, among, titlesOf, WARM_UP } from './rounds.mjs';

/** Number of locks that one process uses at the same time. */
export const AT_ONCE = 16;

/**
 * Measures milliseconds per acquire and release of one process that uses many uncontended locks at once. Writes then share syncs of
 * the disk, and the processors are busy all the time.
 * @param api who takes part
 */
export async function atOnce(api, url, { rounds, times }) {
  return among(await api.cyclesAtOnce(url), async (all) => {
    const sample = async ({ together }, count) => (await together(`at-once-${randomUUID()}`, count, AT_ONCE)).took;
    for (const contestant of all) await sample(contestant, WARM_UP * times);
    const taken = await alternate(all, rounds, async (contestant) => [await sample(contestant, times)]);
    return { titles: titlesOf(all), rounds: taken };
  });
}
