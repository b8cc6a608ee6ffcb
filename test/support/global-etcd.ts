import type { TestProject } from 'vitest/node';
import { sweepDataDirs } from './data-dir.ts';
import { startEtcd } from './etcd.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of the server that all test files of a project share, etcd or EmbeddedEtcd: use unique lock names. */
    etcd: string;
    /** The URL of the server that also has keys which belong to no lock: the same, unless that is a bridge. */
    plain: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  sweepDataDirs();
  const etcd = await startEtcd();
  project.provide('etcd', etcd.url);
  project.provide('plain', etcd.url);
  return () => etcd.stop();
}
