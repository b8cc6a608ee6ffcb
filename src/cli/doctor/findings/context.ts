import type { StoreApi } from '../../../client.ts';
import type { Basis } from '../basis.ts';
import type { Facts } from '../facts.ts';

/** What the findings for one member depend on, in addition to the facts about this member. */
export interface Context {
  readonly facts: Facts;
  readonly api: StoreApi;
  readonly basis: Basis;
  /** Whether locks work on some member: then an outage of another member is only a warning. */
  readonly anyUsable: boolean;
}
