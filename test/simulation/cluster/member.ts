import type { MemoryStore } from '../../../src/server/store/memory.ts';
import type { Store } from '../../../src/server/store/store.ts';
import type { Process } from '../virtual/process.ts';
import type { ReplicaClock } from './clocks.ts';
import type { Peer } from './consensus.ts';
import type { TokensOfMember } from './users.ts';

/** A member of a simulated cluster. Its stores survive when its process is killed: they are on its disk. */
export interface Member extends Peer {
  readonly name: string;
  readonly url: string;
  process: Process;
  applied: number;
  /** When it last continued after a stop, in milliseconds of the world. */
  continuedAt: number;
  readonly tokens: TokensOfMember;
  store: Store;
  clock: ReplicaClock;
  memory: MemoryStore;
}
