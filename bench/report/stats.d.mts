export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

export function percentile(numbers: readonly number[], share: number): number;
export function median(numbers: readonly number[]): number;
export function summary(rounds: readonly (readonly number[])[]): Spread & { readonly p99: number };
export function ratio(over: readonly (readonly number[])[], under: readonly (readonly number[])[]): Spread;
