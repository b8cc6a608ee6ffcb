interface Weighted {
  readonly priority: number;
  readonly weight: number;
}

/** Returns a copy in random order. Each order is equally likely. */
export function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const rest = [...list];
  return list.map(() => rest.splice(Math.floor(random() * rest.length), 1)[0] as T);
}

/**
 * Returns a copy in the order in which RFC 2782 selects SRV records: by priority, and within a priority in random order. The chance of a
 * record to be the next one is its share of the weights of the records that are left.
 */
export function drawnByWeight<T extends Weighted>(records: readonly T[], random: () => number): T[] {
  const priorities = [...new Set(records.map(({ priority }) => priority))].sort((a, b) => a - b);
  return priorities.flatMap((priority) => {
    // Records without a weight come first: else none of them could be drawn before the last one with a weight.
    const rest = records.filter((record) => record.priority === priority).sort((a, b) => a.weight - b.weight);
    const drawn: T[] = [];
    while (rest.length > 0) drawn.push(...rest.splice(drawOne(rest, random), 1));
    return drawn;
  });
}

function drawOne(records: readonly Weighted[], random: () => number): number {
  const sum = records.reduce((total, { weight }) => total + weight, 0);
  // An integer from 0 to the sum, both included.
  let left = Math.floor(random() * (sum + 1));
  for (const [index, { weight }] of records.entries()) {
    left -= weight;
    if (left <= 0) return index;
  }
  return records.length - 1;
}
