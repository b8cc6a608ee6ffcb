/** Number of warm-up rounds: in production, processes that acquire locks have been running for long. */
export const WARM_UP = 24;

/**
 * Runs rounds in which each contestant takes one turn, in random order: other load on the machine affects all contestants alike,
 * and the after-effects of one contestant do not always affect the same other one.
 * @returns the samples of each round, by id
 */
export async function alternate(contestants, rounds, sample) {
  const results = Object.fromEntries(contestants.map(({ id }) => [id, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const contestant of shuffled(contestants)) results[contestant.id].push(await sample(contestant));
  return results;
}

function shuffled(all) {
  const list = [...all];
  for (let left = list.length; left > 1; left -= 1) {
    const drawn = Math.floor(Math.random() * left);
    [list[left - 1], list[drawn]] = [list[drawn], list[left - 1]];
  }
  return list;
}

/** Fewer samples for a contestant that starts a process each time: it is slow and does not get faster. */
export const timesOf = ({ startsAnew }, times) => (startsAnew ? Math.ceil(times / 20) : times);

/** Runs the work with these contestants, then stops them. */
export async function among(contestants, work) {
  try {
    return await work(contestants);
  } finally {
    for (const contestant of contestants) await contestant.stop();
  }
}

export const titlesOf = (contestants) => Object.fromEntries(contestants.map(({ id, title }) => [id, title]));
