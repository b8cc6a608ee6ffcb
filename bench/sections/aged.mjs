import { randomUUID } from 'node:crypto';
import { alternate, among, titlesOf, WARM_UP } from './rounds.mjs';

/**
 * Measures milliseconds per acquire and release of a lock that was acquired often, and of a new one. etcd keeps what the earlier cycles
 * have removed, because nothing compacts it.
 * @param api who takes part
 * @param ages numbers of earlier cycles, ascending
 */
export async function aged(api, url, { ages, rounds, times }) {
  return among(await api.agedCycles(url), async (all) => {
    const old = `aged-${randomUUID()}`;
    for (const contestant of all) await contestant.cycles(randomUUID(), WARM_UP * times);
    const byAge = {};
    let age = 0;
    for (const next of ages) {
      for (const contestant of all) await contestant.cycles(old + contestant.id, next - age);
      age = next;
      const both = all.flatMap(({ id, cycles }) => [
        { id: `old ${id}`, cycles: () => cycles(old + id, times) },
        { id: `new ${id}`, cycles: () => cycles(randomUUID(), times) },
      ]);
      const taken = await alternate(both, rounds, (one) => one.cycles());
      byAge[age] = Object.fromEntries(all.map(({ id }) => [id, { old: taken[`old ${id}`], new: taken[`new ${id}`] }]));
    }
    return { titles: titlesOf(all), byAge };
  });
}
