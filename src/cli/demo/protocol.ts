import type { EtcdClientOptions } from '../../client.ts';

/** What a contender is to do: the first line of its stdin, as JSON. A second line ends its hold, the end of stdin its process. */
export interface Task {
  /** Options of its client. */
  readonly client: EtcdClientOptions;
  /** Name of the lock. */
  readonly name: string;
  /** Name of the contender: the label of its entries. */
  readonly label: string;
  /** TTL of its entries in seconds. */
  readonly ttl: number;
  /** How many times it acquires the lock. */
  readonly turns: number;
  /** Seconds for which it holds the lock each time. */
  readonly hold: number;
}

/** What a contender reports: a line of its stdout, as JSON. */
export interface Report {
  /** `ready`: it waits for its task. `writes`: it writes to the resource that the lock protects. `lost`: it notices that it lost the lock. */
  readonly is: 'ready' | 'waits' | 'holds' | 'writes' | 'releases' | 'lost';
  /** When, by {@link machineClock}. */
  readonly at: number;
  /** Fencing token of the hold, in decimal digits; with `holds` and `writes`. */
  readonly token?: string;
}

/** Returns milliseconds on the monotonic clock of the machine: the same in all processes, and as `time.monotonic()` of Python. */
export const machineClock = (): number => Number(process.hrtime.bigint()) / 1e6;
