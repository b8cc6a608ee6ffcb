export interface Taken {
  readonly requests: number;
  readonly kinds: Readonly<Record<string, number>>;
  readonly trips: number;
  /** In both directions. */
  readonly bytes: number;
  readonly connections: number;
  readonly open: number;
}

export class Tally {
  connection(): { request(chunk: Buffer): void; answer(chunk: Buffer): void; closed(): void };
  take(): Taken;
}
