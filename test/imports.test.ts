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
  expect(files).toEqual(expect.arrayContaining(['index.ts', 'errors.ts', 'keys/api.ts', 'lock/lock.ts', 'v2/wire.ts']));
  const arrows = files.flatMap((file) => arrowsOf(file, read(file)));
  expect(arrows).toContainEqual({ from: 'v2/endpoint.ts', to: 'undici' });
  expect(arrows).toContainEqual({ from: 'lock/entry.ts', to: 'uuid' });
  expect(arrows).toContainEqual({ from: 'keys/api.ts', to: 'keys/cleanups.ts' });
  expect(arrows).toContainEqual({ from: 'index.ts', to: 'lock/lock.ts' });
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
  ['lock/lock.ts', "import { EtcdClient } from '../v2/client.ts';"],
  ['lock/lock.ts', "import type { EtcdClient } from '../v2/client.ts';"],
  ['lock/lock.ts', "import type {\n  EtcdClient,\n  Other,\n} from '../v2/client.ts';"],
  ['lock/lock.ts', "export * from '../v2/client.ts';"],
  ['lock/lock.ts', "import '../server/front.ts';"],
  ['lock/lock.ts', "const client = await import('../v2/client.ts');"],
  ['lock/lock.ts', "type Client = import('../v2/client.ts').EtcdClient;"],
  ['lock/lock.ts', "const { Pool } = require('undici');"],
  ['lock/lock.ts', 'import { Pool } from "undici";'],
  ['lock/lock.ts', "import http from 'node:http';"],
  ['lock/lock.ts', "import { v4 } from 'uuid';"],
  ['lock/lock.ts', "import http from 'http';"],
  ['lock/lock.ts', "import { AsyncLocalStorage } from 'node:async_hooks';"],
  ['lock/manager.ts', "import { channel } from 'node:diagnostics_channel';"],
  ['lock/lock.ts', "import { Lock } from '../index.ts';"],
  ['lock/entry.ts', "import { Pool } from 'undici';"],
  ['keys/api.ts', "import { Lock } from '../lock/lock.ts';"],
  ['keys/api.ts', "import { encodeGet } from '../v2/wire.ts';"],
  ['keys/paths.ts', "import createDebug from 'debug';"],
  ['lock/entry.ts', "import createDebug from 'debug';"],
  ['keys/paths.ts', "import { createDebug } from '../debug.ts';"],
  ['keys/paths.ts', "import { connect } from 'node:net';"],
  ['errors.ts', "import { now } from './timing.ts';"],
  ['timing.ts', "import { EtcdException } from './errors.ts';"],
  ['timing.ts', "import { lookup } from 'node:dns';"],
  ['keys/cleanups.ts', "import { once } from 'node:events';"],
  ['v2/client.ts', "import { Lock } from '../lock/lock.ts';"],
  ['v2/client.ts', "import { EmbeddedEtcd } from '../server/embedded.ts';"],
  ['v2/client.ts', "import { v4 } from 'uuid';"],
  ['v2/client.ts', "import axios from 'axios';"],
  ['server/front.ts', "import { EtcdClient } from '../v2/client.ts';"],
  ['server/front.ts', "import { Lock } from '../lock/lock.ts';"],
  ['index.ts', "export { main } from './cli/main.ts';"],
  ['tools/new.ts', "import { now } from '../timing.ts';"],
])('the check is proof against %s with %j', (file, source) => {
  expect(arrowsOf(file, source).map(whyForbidden)).toEqual([expect.stringContaining(file)]);
});

test.each([
  ['server/front.ts', "import { decodeSet } from '../v2/wire.ts';\nimport { createServer } from 'node:http';"],
  ['cli/main.ts', "import { EtcdClient } from '../index.ts';\nimport { parseArgs } from 'node:util';"],
  ['v2/endpoints.ts', "import { resolveSrv } from 'node:dns/promises';"],
  ['timing.ts', "import { setMaxListeners } from 'node:events';"],
  ['lock/entry.ts', "import { v4 } from 'uuid';\nimport { createDebug } from '../debug.ts';"],
  [
    'lock/lock.ts',
    "// import { Pool } from 'undici';\n/* from '../v2/client.ts' */\nimport { now } from '../timing.ts';",
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
  // The last one prints process ids, to the process that started it.
  expect(printing).toEqual(['cli/job/bystander-main.ts', 'cli/streams.ts']);
});
