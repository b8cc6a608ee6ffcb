import type { Source } from '../base/cancellation.ts';

/** Options of any call to a store. */
export interface StoreCall {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: Source | undefined;
}
