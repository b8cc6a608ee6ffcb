import type { TestProject } from 'vitest/node';
import { sweepDataDirs } from '../../test/support/data-dir.ts';
import { startEtcd } from '../../test/support/etcd.ts';
import { type BuiltVersion, built } from './built.ts';

/** 3.4 is the one on the PATH, as in `npm test`. */
export type Version = '3.4' | BuiltVersion;

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of a server of each version, which all test files share: use unique lock names. */
    servers: Record<Version, string>;
  }
}

/** Starts the servers that `npm run peers` has built. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  sweepDataDirs();
  const [on34, on35, on36] = await Promise.all([
    startEtcd(),
    startEtcd({ program: built('3.5') }),
    startEtcd({ program: built('3.6') }),
  ]);
  project.provide('servers', { '3.4': on34.url, '3.5': on35.url, '3.6': on36.url });
  return async () => {
    await Promise.all([on34, on35, on36].map((etcd) => etcd.stop()));
  };
}
