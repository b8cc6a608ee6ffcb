/** The nearest-rank percentile of numbers in any order. */
export function percentile(numbers, share) {
  const sorted = [...numbers].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

export function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Median, lowest and highest of numbers, one per round. */
export const spread = (numbers) => ({ median: median(numbers), low: Math.min(...numbers), high: Math.max(...numbers) });

/** Median, lowest and highest of the medians of the rounds, and the 99th percentile of all samples. */
export const summary = (rounds) => ({ ...spread(rounds.map(median)), p99: percentile(rounds.flat(), 0.99) });

/** Spread of the ratios of medians within each round: load on the machine affects both sides of a round alike. */
export const ratio = (over, under) => spread(over.map((samples, round) => median(samples) / median(under[round])));
