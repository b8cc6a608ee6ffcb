import type { TestProject } from 'vitest/node';
import { sweepDataDirs } from './data-dir.ts';
import { startEtcd } from './etcd.ts';
import { startServerProcess } from './server-process.ts';

/** Starts an etcd, and the built Bridge, which the test files of the project use as their etcd v2. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  sweepDataDirs();
  const etcd = await startEtcd();
  const bridge = await startServerProcess('bridge-server.mjs', etcd.url);
  project.provide('etcd', bridge.url);
  project.provide('plain', etcd.url);
  return async () => {
    await bridge.stop();
    await etcd.stop();
  };
}
