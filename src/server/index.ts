/**
 * An etcd server for tests and local trials, and a bridge for clients of etcd v2 to locks on etcd v3.
 * @module etcd-v2-lock/server
 */
export { Bridge } from './bridge/bridge.ts';
export type { BridgeOptions, BridgeTls } from './bridge/options.ts';
export type { BridgeRecord } from './bridge/records.ts';
export { EmbeddedEtcd, type EmbeddedEtcdOptions } from './embedded.ts';
export type { EtcdVersion } from './version.ts';
