export { EmbeddedEtcd, type EmbeddedEtcdOptions } from './embedded.ts';
