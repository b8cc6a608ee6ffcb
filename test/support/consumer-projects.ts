import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocks } from './readme.ts';
import { strictTsconfig } from './user-project.ts';

/** A directory in a user's project, with its files. */
type Files = Readonly<Record<string, string>>;

const TEST = `test('acquires a lock', async () => {
  const etcd = await EmbeddedEtcd.start();
  const client = new EtcdClient({ endpoints: etcd.url });
  const locks = new LockManager(client);
  expect(await locks.request('report', (held) => typeof held.fencingToken)).toBe('bigint');
  await client.close();
  await etcd.stop();
});
`;

/** A project with the example for Jest in the documentation, and nothing that configures Jest. */
export const JEST: Files = {
  'package.json': '{}',
  'lock.test.js': blocks.find(({ code }) => code.startsWith('// lock.test.js'))?.code ?? '',
};

/** A project with ts-jest and its preset. */
export const TS_JEST: Files = {
  'package.json': JSON.stringify({ jest: { preset: 'ts-jest' } }),
  'tsconfig.json': strictTsconfig({ module: 'commonjs' }),
  'report.test.ts': `import { expect, test } from '@jest/globals';
import { EtcdClient, LockManager } from 'etcd-v2-lock';
import { EmbeddedEtcd } from 'etcd-v2-lock/server';

${TEST}`,
};

/** Uses all entry points, and prints `bigint`. Members that are not public do not compile. */
const PROGRAM = `import { subscribe } from 'node:diagnostics_channel';
import { EtcdClient, type Held, LockManager, type RequestMessages } from 'etcd-v2-lock';
import { observeLocks as trace } from 'etcd-v2-lock/opentelemetry';
import { observeLocks } from 'etcd-v2-lock/prom-client';
import { Lock, type LockOptions } from 'etcd-v2-lock/python-etcd';
import { EmbeddedEtcd } from 'etcd-v2-lock/server';
import { Registry } from 'prom-client';

async function main(): Promise<void> {
  const stop: () => void = observeLocks({ registers: [new Registry()], labelOf: (name) => name });
  trace();
  subscribe('tracing:etcd-v2-lock:request:held', (message) => {
    const waited: number = (message as RequestMessages['held']).waited;
    if (waited > 60) console.log(waited);
  });
  const etcd = await EmbeddedEtcd.start();
  const client = new EtcdClient({ endpoints: etcd.url });
  const { signal } = new AbortController();
  const type = await new LockManager(client).request('report', { signal }, (held: Held) => typeof held.fencingToken);
  console.log(type);
  const options: LockOptions = {};
  await new Lock(client, 'report', options).acquire({ lockTtl: 30 });
  // @ts-expect-error
  client.cleanups;
  // @ts-expect-error
  client.store;
  // @ts-expect-error
  void (() => new LockManager({}));
  await client.close();
  await etcd.stop();
  stop();
}

void main();
`;

/** Projects with each module setting of TypeScript: the files, and the compiled program that Node can run, if any. */
export const TYPESCRIPT: Readonly<Record<string, { readonly files: Files; readonly programs: readonly string[] }>> = {
  commonjs: {
    files: { 'report.ts': PROGRAM, 'package.json': '{}', 'tsconfig.json': strictTsconfig({ module: 'commonjs' }) },
    programs: ['out/report.js'],
  },
  node16: {
    files: { 'a.mts': PROGRAM, 'b.cts': PROGRAM, 'tsconfig.json': strictTsconfig({ module: 'node16' }) },
    programs: ['out/a.mjs', 'out/b.cjs'],
  },
  nodenext: {
    files: { 'a.mts': PROGRAM, 'b.cts': PROGRAM, 'tsconfig.json': strictTsconfig({ module: 'nodenext' }) },
    programs: ['out/a.mjs', 'out/b.cjs'],
  },
  bundler: {
    files: {
      'report.ts': PROGRAM,
      'tsconfig.json': strictTsconfig({ module: 'esnext', moduleResolution: 'bundler' }),
    },
    programs: [],
  },
};

/** Writes the files into a new directory of the project, and returns the directory. */
export function makeProject(parent: string, name: string, files: Files): string {
  const dir = join(parent, name);
  mkdirSync(dir);
  for (const [file, content] of Object.entries(files)) writeFileSync(join(dir, file), content);
  return dir;
}
