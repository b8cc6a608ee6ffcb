/** A source of random numbers that repeats for the same seed. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #count = 1;

  constructor(seed: string) {
    const [a, b, c] = hash(seed);
    this.#a = a;
    this.#b = b;
    this.#c = c;
    for (let i = 0; i < 12; i++) this.next();
  }

  /** Returns a number from 0 up to, but not including, 1. Small Fast Counter, as in PractRand. */
  next(): number {
    const sum = (this.#a + this.#b + this.#count) | 0;
    this.#count = (this.#count + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  }

  /** Returns a number from `least` up to, but not including, `most`. */
  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** Returns a whole number from `least` to `most`. */
  integer(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1));
  }

  /** Returns true with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(from: readonly [T, ...T[]]): T;
  pick<T>(from: readonly T[]): T | undefined;
  pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.next() * from.length)];
  }

  /** Returns a key of a table of weights. */
  weighted<K extends string>(weights: Readonly<Partial<Record<K, number>>>): K {
    const all = Object.entries(weights) as [K, number][];
    let at = this.next() * all.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of all) {
      at -= weight;
      if (at < 0) return key;
    }
    throw new Error('a table of weights must have a weight greater than 0');
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.integer(0, 255)));
  }
}

/** Returns three numbers that depend on each character. Based on cyrb53. */
function hash(text: string): [number, number, number] {
  let [a, b, c] = [0xdeadbeef, 0x41c6ce57, 0x9e3779b9];
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0;
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
    c = Math.imul(c ^ code, 2246822519);
  }
  return [a ^ (b >>> 16), b ^ (c >>> 13), c ^ (a >>> 16)];
}
