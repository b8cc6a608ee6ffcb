import type { TestProject } from 'vitest/node';
import { startServerProcess } from './server-process.ts';

/** Starts the built EmbeddedEtcd. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startServerProcess('embedded-server.mjs');
  project.provide('etcd', server.url);
  project.provide('plain', server.url);
  return () => server.stop();
}
