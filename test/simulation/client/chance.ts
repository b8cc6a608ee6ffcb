export const sleep = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
export const between = (least: number, most: number): number => least + Math.random() * (most - least);
export const pick = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)] as T;
export const chance = (probability: number): boolean => Math.random() < probability;

export function sleepUntil(ms: number, then?: () => void): { promise: Promise<void>; cancel: () => void } {
  let timer: NodeJS.Timeout | undefined;
  const promise = new Promise<void>((resolve) => {
    timer = setTimeout(() => {
      then?.();
      resolve();
    }, ms);
  });
  return { promise, cancel: () => clearTimeout(timer) };
}
