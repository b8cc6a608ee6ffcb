import type { LockManager } from '../../../src/index.ts';
import type { CallReport } from '../report.ts';

/** A call under way. */
export interface Call extends CallReport {
  /** A manager for this call alone, so that its entries can be told from those of others. */
  readonly manager: LockManager;
  /** Its async context. */
  readonly context: unknown;
  /** Returns another one, whose requests evict the entries of its dead predecessor. */
  readonly identified: () => LockManager;
}
