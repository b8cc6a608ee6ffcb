/** Rounds before the first that counts: locks are taken by processes that have long been running. */
export const WARM_UP = 4;

/**
 * Rounds in which each contestant has its turn, each time beginning with another one, so that whatever else goes on at
 * the machine meets them all alike.
 * @returns for each id the samples of each round
 */
export async function alternate(contestants, rounds, sample) {
  const results = Object.fromEntries(contestants.map(({ id }) => [id, []]));
  for (let round = 0; round < rounds; round += 1) {
    const first = round % contestants.length;
    for (const contestant of [...contestants.slice(first), ...contestants.slice(0, first)])
      results[contestant.id].push(await sample(contestant));
  }
  return results;
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
