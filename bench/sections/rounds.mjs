/** Rounds before the first that counts: locks are taken by processes that have long been running. */
export const WARM_UP = 24;

/**
 * Rounds in which each contestant has its turn, in an order of their own: whatever else goes on at the machine meets them
 * all alike, and what one does to the machine meets not always the same other one.
 * @returns for each id the samples of each round
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

/** The work with these contestants, which are stopped after it. */
export async function among(contestants, work) {
  try {
    return await work(contestants);
  } finally {
    for (const contestant of contestants) await contestant.stop();
  }
}

export const titlesOf = (contestants) => Object.fromEntries(contestants.map(({ id, title }) => [id, title]));
