/**
 * Seeds of the comparisons. SEED in the environment replaces the last one, for a search for more differences: a fresh seed each time
 * would fail runs whose change is not to blame.
 */
export const SEEDS: readonly number[] = [20_261_127, 20_261_128, 20_261_129, Number(process.env['SEED'] ?? 20_261_130)];
