import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { arrowsOf, onlyReExports, whyForbidden } from './support/imports.ts';

const src = new URL('../src/', import.meta.url);
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts'))
  .sort();
const read = (file: string) => readFileSync(new URL(file, src), 'utf8');

test.each(files)('%s imports only what its room may', (file) => {
  expect(arrowsOf(file, read(file)).flatMap((arrow) => whyForbidden(arrow) ?? [])).toEqual([]);
});

test('every file is looked at, and imports of every kind are found in them', () => {
  expect(files).toEqual(
    expect.arrayContaining(['index.ts', 'errors.ts', 'v2/keys-api.ts', 'python/lock.ts', 'v2/wire.ts']),
  );
  const arrows = files.flatMap((file) => arrowsOf(file, read(file)));
  expect(arrows).toContainEqual({ from: 'http/endpoint.ts', to: 'undici' });
  expect(arrows).toContainEqual({ from: 'v2/locks/entry.ts', to: 'uuid' });
  expect(arrows).toContainEqual({ from: 'v2/keys-api.ts', to: 'pending-work.ts' });
  expect(arrows).toContainEqual({ from: 'index.ts', to: 'python/lock.ts' });
});

test('every import names a file that is there', () => {
  const arrows = files.flatMap((file) => arrowsOf(file, read(file)));
  const missing = arrows.filter(({ to }) => to.endsWith('.ts') && !files.includes(to));
  expect(missing).toEqual([]);
});

test('index.ts re-exports and does nothing else', () => {
  expect(onlyReExports(read('index.ts'))).toBe(true);
});

test.each([
  ['http/endpoint.ts', "import { decodeSet } from '../v2/wire.ts';"],
  ['http/endpoint.ts', "import type { Lock } from '../python/lock.ts';"],
  ['recipe/lease.ts', "import { Pool } from 'undici';"],
  ['recipe/lease.ts', "const client = await import('../http/endpoint.ts');"],
  ['recipe/lease.ts', "const { connect } = require('node:net');"],
  ['recipe/lease.ts', "import createDebug from 'debug';"],
  ['manager/manager.ts', "export * from '../python/lock.ts';"],
  ['manager/manager.ts', "import { channel } from 'node:diagnostics_channel';"],
  ['python/lock.ts', "import type {\n  LockManager,\n  Other,\n} from '../manager/manager.ts';"],
  ['python/lock.ts', "type Endpoint = import('../http/endpoint.ts').Endpoint;"],
  ['python/lock.ts', "import '../server/embedded.ts';"],
  ['errors.ts', "import { now } from './time.ts';"],
  ['time.ts', "import { Scope } from './cancellation.ts';"],
  ['v2/client.ts', "import { Lock } from '../python/lock.ts';"],
  ['v2/client.ts', "import axios from 'axios';"],
  ['server/embedded.ts', "import { Endpoint } from '../http/endpoint.ts';"],
  ['index.ts', "export { main } from './cli/main.ts';"],
  ['tools/new.ts', "import { now } from '../time.ts';"],
])('the check is proof against %s with %j', (file, source) => {
  expect(arrowsOf(file, source).map(whyForbidden)).toEqual([expect.stringContaining(file)]);
});

test.each([
  ['server/embedded.ts', "import { decodeSet } from '../v2/wire.ts';\nimport { createServer } from 'node:http';"],
  ['cli/main.ts', "import { EtcdClient } from '../index.ts';\nimport { parseArgs } from 'node:util';"],
  ['http/failover/endpoints.ts', "import { resolveSrv } from 'node:dns/promises';"],
  ['cancellation.ts', "import { setMaxListeners } from 'node:events';"],
  ['v2/locks/entry.ts', "import { v4 } from 'uuid';\nimport { createDebug } from '../debug.ts';"],
  [
    'python/lock.ts',
    "// import { Pool } from 'undici';\n/* from '../v2/client.ts' */\nimport { now } from '../time.ts';",
  ],
])('the check lets %s have %j', (file, source) => {
  expect(arrowsOf(file, source).flatMap((arrow) => whyForbidden(arrow) ?? [])).toEqual([]);
});

test.each([
  ["export const x = 1;\nexport { y } from './y.ts';", false],
  ["import { y } from './y.ts';\nexport { y };", false],
  ['export default 1;', false],
  [
    "/** Doc. */\nexport { y, type Z } from './y.ts';\nexport type * from './z.ts'; // why\nexport * as w from './w.ts';",
    true,
  ],
])('%j re-exports and does nothing else: %s', (source, only) => {
  expect(onlyReExports(source)).toBe(only);
});

test('the commands print by streams.ts alone, which escapes', () => {
  const printing = files.filter((file) => /\bstd(out|err)\.write\b|\bconsole\./.test(read(file)));
  expect(printing).toEqual(['cli/streams.ts']);
});
