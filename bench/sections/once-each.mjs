import { randomUUID } from 'node:crypto';
import { alternate, among, titlesOf } from './rounds.mjs';

/**
 * Measures milliseconds per acquire and release of locks, each of which is used once.
 * @param api who takes part
 */
export async function onceEach(api, url, { rounds, locks }) {
  return among(await api.onceEach(url), async (all) => {
    const sample = (contestant) => contestant.onceEach(`once-${randomUUID()}`, locks);
    for (const contestant of all) await sample(contestant);
    return { titles: titlesOf(all), rounds: await alternate(all, rounds, sample), locks };
  });
}
