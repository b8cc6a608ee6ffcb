/**
 * `Lock`, which works like python-etcd's.
 * @module etcd-v2-lock/python-etcd
 */

export { type Contender, Lock } from './lock.ts';
export type { AcquireOptions, LockOptions } from './options.ts';
