/**
 * An etcd v2 server for tests and local trials.
 * @module etcd-v2-lock/server
 */
export { EmbeddedEtcd, type EmbeddedEtcdOptions } from './embedded.ts';
