// The bridge that a project's tests use as their etcd v2, to a version of etcd that `npm run peers` has built.
import type { TestProject } from 'vitest/node';
import { startServerProcess } from '../../../test/support/server-process.ts';
import startEtcdOfProject from './server.ts';

/** As test/support/global-bridge.ts does with the etcd on the PATH. Keys that belong to no lock are on an EmbeddedEtcd. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stopEtcd = await startEtcdOfProject(project);
  const bridge = await startServerProcess('bridge-server.mjs', project.getProvidedContext().plain);
  const other = await startServerProcess('embedded-server.mjs');
  project.provide('etcd', bridge.url);
  project.provide('plain', other.url);
  return async () => {
    await Promise.all([bridge.stop(), other.stop()]);
    await stopEtcd();
  };
}
