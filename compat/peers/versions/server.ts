// The shared server of a project whose tests run on a version of etcd that `npm run peers` has built.
import type { TestProject } from 'vitest/node';
import { sweepDataDirs } from '../../../test/support/data-dir.ts';
import { startEtcd } from '../../../test/support/etcd.ts';
import { type BuiltVersion, built } from '../built.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The version that the tests of the project start. */
    etcdVersion: BuiltVersion;
  }
}

/** Starts the server that all test files of the project share, as test/support/global-etcd.ts does with the etcd on the PATH. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  sweepDataDirs();
  const etcd = await startEtcd({ program: built(project.getProvidedContext().etcdVersion) });
  project.provide('etcd', etcd.url);
  project.provide('plain', etcd.url);
  return () => etcd.stop();
}
