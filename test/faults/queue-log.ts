import type { QueueEvent } from './history.ts';

/** What etcd did with the queues of all locks, as a watch of each member shows it. */
export interface QueueLog {
  /** Every change of every queue so far, in etcd's order. */
  events(): QueueEvent[];
  stop(): Promise<void>;
}
