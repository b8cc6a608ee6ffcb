/**
 * An etcd v2 server for tests and local trials, and a bridge for clients of etcd v2 to locks on etcd v3.
 * @module etcd-v2-lock/server
 */
export { Bridge, type BridgeOptions } from './bridge/bridge.ts';
export { EmbeddedEtcd, type EmbeddedEtcdOptions } from './embedded.ts';
