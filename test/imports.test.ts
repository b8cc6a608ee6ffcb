import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryDirectory } from './support/temporary.ts';

// `biome ci` checks the source itself. These tests apply its import rules to files that break them.

const root = fileURLToPath(new URL('..', import.meta.url));
const src = join(root, 'src');
const IMPORT_RULES = ['noRestrictedImports', 'noImportCycles', 'noUndeclaredDependencies', 'noCommonJs'];

interface Report {
  readonly diagnostics: readonly { readonly category: string; readonly location: { readonly path: string } }[];
}

/** A file and its source. */
type Arrow = readonly [file: string, source: string];

/** Runs Biome with the repository's configuration on these files. Returns the import rules that each file breaks. */
function brokenRules(files: readonly Arrow[]): string[][] {
  const directory = temporaryDirectory();
  for (const name of ['biome.json', 'package.json']) cpSync(join(root, name), join(directory, name));
  for (const [file, source] of files) {
    const path = join(directory, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, source, { flag: 'wx' });
  }
  const biome = join(root, 'node_modules/.bin/biome');
  const args = ['lint', '--reporter=json', '--max-diagnostics=none', '.'];
  const { stdout } = spawnSync(biome, args, { cwd: directory, encoding: 'utf8' });
  const { diagnostics } = JSON.parse(stdout) as Report;
  const broken = new Map(files.map(([file]) => [file, [] as string[]]));
  for (const { category, location } of diagnostics) {
    const rule = category.slice(category.lastIndexOf('/') + 1);
    if (IMPORT_RULES.includes(rule)) broken.get(location.path)?.push(rule);
  }
  return [...broken.values()];
}

/** Gives the files named probe.ts different names. */
const numbered = (arrows: readonly Arrow[]): Arrow[] =>
  arrows.map(([file, source], i) => [file.replace('probe', `probe${i}`), source]);

/** Adds the import rules that each file breaks. */
function checked(arrows: readonly Arrow[]): [file: string, source: string, rules: string[]][] {
  const rules = brokenRules(numbered(arrows));
  return arrows.map(([file, source], i) => [file, source, rules[i] ?? []]);
}

const forbidden: readonly Arrow[] = [
  ['src/http/probe.ts', "import { decodeChange } from '../v2/wire.ts';"],
  ['src/http/probe.ts', "import type { Lock } from '../python/lock.ts';"],
  ['src/http/probe.ts', "import { V2Client } from '../index.ts';"],
  ['src/http/failover/probe.ts', "import { type Node, decodeChange } from '../../v2/wire.ts';"],
  ['src/v2/probe.ts', "import { Lock } from '../python/lock.ts';"],
  ['src/v2/probe.ts', "import { Lease } from '../recipe/lease.ts';"],
  ['src/v2/probe.ts', "import { Pool } from 'undici';"],
  ['src/v2/locks/probe.ts', "import type { Persist } from '../../recipe/attempt.ts';"],
  ['src/v2/wire/probe.ts', "import { Lease } from '../../recipe/lease.ts';"],
  ['src/v3/probe.ts', "import { Lease } from '../recipe/lease.ts';"],
  ['src/v3/probe.ts', "import { Pool } from 'undici';"],
  ['src/v3/locks/probe.ts', "import { pollCap } from '../../v2/locks/timing.ts';"],
  ['src/v3/locks/probe.ts', "import type { V3Client } from '../client.ts';"],
  ['src/v3/locks/leases/probe.ts', "import type { V3Client } from '../../client.ts';"],
  ['src/v3/rpc/probe.ts', "import type { V3Client } from '../client.ts';"],
  ['src/v3/rpc/probe.ts', "import type { Session } from '../locks/session.ts';"],
  ['src/v3/gateway/probe.ts', "import type { V3Settings } from '../options.ts';"],
  ['src/v3/gateway/probe.ts', "import type { V3Entry } from '../rpc/entry.ts';"],
  ['src/v3/gateway/probe.ts', "import type { Session } from '../locks/session.ts';"],
  ['src/v2/probe.ts', "import { V3Client } from '../v3/client.ts';"],
  ['src/v3/probe.ts', "import { BothClient } from '../both/client.ts';"],
  ['src/both/probe.ts', "import { V2Ticket } from '../v2/locks/ticket.ts';"],
  ['src/both/probe.ts', "import { Lease } from '../recipe/lease.ts';"],
  ['src/recipe/probe.ts', "import type { V3Client } from '../v3/client.ts';"],
  ['src/recipe/probe.ts', "const { Endpoint } = await import('../http/endpoint.ts');"],
  ['src/recipe/probe.ts', "export { LockManager } from '../manager/manager.ts';"],
  ['src/recipe/probe.ts', "import type { KeysApi } from '../v2/keys-api.ts';"],
  ['src/recipe/entries/probe.ts', "import type { KeysApi } from '../../v2/keys-api.ts';"],
  ['src/recipe/probe.ts', "import createDebug from 'debug';"],
  ['src/recipe/probe.ts', "import { connect } from 'node:net';"],
  ['src/manager/probe.ts', "export * from '../python/lock.ts';"],
  ['src/manager/probe.ts', "import { checkLockName } from '../v2/paths.ts';"],
  ['src/manager/label.ts', "import { checkLockName } from '../v2/paths.ts';"],
  ['src/manager/election/probe.ts', "import { checkLockName } from '../../v2/paths.ts';"],
  ['src/manager/reentrance.ts', "import type { KeysApi } from '../v2/keys-api.ts';"],
  ['src/manager/probe.ts', "export type * from '../python/lock.ts';"],
  ['src/manager/probe.ts', "import { channel } from 'node:diagnostics_channel';"],
  ['src/manager/trace.ts', "import { AsyncLocalStorage } from 'node:async_hooks';"],
  ['src/manager/once/probe.ts', "import { Cron } from 'croner';"],
  ['src/manager/once/probe.ts', "import type { V3Client } from '../../v3/client.ts';"],
  ['src/python/probe.ts', "import '../server/embedded.ts';"],
  ['src/python/probe.ts', "import { OwnEntry } from '../v2/locks/entry.ts';"],
  ['src/python/probe.ts', "import type {\n  LockManager,\n  Other,\n} from '../manager/manager.ts';"],
  ['src/python/probe.ts', "import { v4 } from 'uuid';"],
  ['src/metrics/probe.ts', "import { Counter } from 'prom-client';"],
  ['src/metrics/probe.ts', "import { LockManager } from '../manager/manager.ts';"],
  ['src/metrics/prom-client.ts', "import { trace } from '@opentelemetry/api';"],
  ['src/manager/probe.ts', "import { count } from '../metrics/counts.ts';"],
  ['src/server/probe.ts', "import { Endpoint } from '../http/endpoint.ts';"],
  ['src/cli/commands/probe.ts', "import { Pool } from 'undici';"],
  ['src/errors.ts', "import { V2Client } from './v2/client.ts';"],
  ['src/client.ts', "import { LockManager } from './manager/manager.ts';"],
  ['src/base/time.ts', "import { setTimeout } from 'node:timers/promises';"],
  ['src/index.ts', "export { main } from './cli/main.ts';"],
  ['src/tools/probe.ts', "import { now } from '../base/time.ts';"],
  ['src/base/probe.ts', "import type { Entry } from '../recipe/entries/entry.ts';"],
  ['src/base/probe.ts', "import { EtcdClient } from '../client.ts';"],
  ['page/probe.ts', "import { EtcdClient } from '../src/client.ts';"],
  ['page/probe.ts', "import { join } from 'node:path';"],
];

test('Biome rejects forbidden imports of every kind', () => {
  expect(checked(forbidden)).toEqual(forbidden.map((arrow) => [...arrow, ['noRestrictedImports']]));
});

const allowed: readonly Arrow[] = [
  ['src/http/endpoint.ts', "import { Client } from 'undici';\nimport { now } from '../base/time.ts';"],
  [
    'src/http/failover/probe.ts',
    "import { Endpoint } from '../endpoint.ts';\nimport { now } from '../../base/time.ts';",
  ],
  ['src/http/failover/probe.ts', "import { resolveSrv } from 'node:dns/promises';"],
  ['src/v2/probe.ts', "import { Endpoint } from '../http/endpoint.ts';\nimport { longPoll } from './watch.ts';"],
  ['src/v2/locks/probe.ts', "import type { LockStore } from '../../recipe/store.ts';"],
  ['src/v2/wire/probe.ts', "import { isUtf8 } from 'node:buffer';\nimport { checkKey } from '../paths.ts';"],
  [
    'src/v3/locks/probe.ts',
    "import type { Ticket } from '../../recipe/store.ts';\nimport { idOf } from '../rpc/keys.ts';\nimport { NotFound } from '../gateway/errors.ts';",
  ],
  [
    'src/v3/rpc/probe.ts',
    "import type { GatewayClient } from '../gateway/gateway.ts';\nimport { idOf } from './keys.ts';",
  ],
  [
    'src/v3/gateway/probe.ts',
    "import { Cluster } from '../../http/cluster.ts';\nimport { VERSION } from './version.ts';",
  ],
  [
    'src/v3/probe.ts',
    "import { GatewayClient } from './gateway/gateway.ts';\nimport { Leases } from './locks/leases/leases.ts';",
  ],
  [
    'src/both/probe.ts',
    "import type { Ticket } from '../recipe/store.ts';\nimport { V3Client } from '../v3/client.ts';",
  ],
  ['src/recipe/probe.ts', "import { v4 } from 'uuid';\nimport { rule } from './rules.ts';"],
  ['src/recipe/entries/probe.ts', "import { lost } from '../../errors.ts';\nimport type { Entry } from '../store.ts';"],
  ['src/manager/label.ts', "import { hostname } from 'node:os';"],
  ['src/manager/election/probe.ts', "import { Hold } from '../hold.ts';\nimport { now } from '../../base/time.ts';"],
  ['src/manager/reentrance.ts', "import { AsyncLocalStorage } from 'node:async_hooks';"],
  ['src/manager/trace.ts', "import { channel } from 'node:diagnostics_channel';"],
  ['src/manager/once/probe.ts', "import type { Held } from '../held.ts';\nimport { now } from '../../base/time.ts';"],
  ['src/manager/once/schedule.ts', "import { Cron } from 'croner';"],
  ['src/metrics/prom-client.ts', "import { Counter } from 'prom-client';\nimport { count } from './counts.ts';"],
  ['src/metrics/spans.ts', "import { trace } from '@opentelemetry/api';\nimport { observe } from './requests.ts';"],
  ['src/metrics/probe.ts', "import type { RequestTrace } from '../manager/trace.ts';"],
  ['src/python/lock.ts', "// import { Pool } from 'undici';\nimport { Lease } from '../recipe/lease.ts';"],
  [
    'src/server/front/probe.ts',
    "import { decodeChange } from '../../v2/wire.ts';\nimport { createServer } from 'node:http';",
  ],
  ['src/cli/commands/probe.ts', "import { Command } from 'commander';\nimport { V2Client } from '../../index.ts';"],
  ['src/base/async-context.ts', "import { AsyncResource } from 'node:async_hooks';"],
  ['src/base/cancellation.ts', "import { setMaxListeners } from 'node:events';\nimport { now } from './time.ts';"],
  ['src/base/debug.ts', "import debugOf from 'debug';\nimport { printable } from './printable.ts';"],
  [
    'src/client.ts',
    "import { BothClient } from './both/client.ts';\nimport { V2Client } from './v2/client.ts';\nimport { V3Client } from './v3/client.ts';",
  ],
  ['src/errors.ts', "import { printable } from './base/printable.ts';"],
  ['src/base/probe.ts', "import { EtcdException } from '../errors.ts';\nimport { now } from './time.ts';"],
  ['src/index.ts', "export { Lock } from './python/lock.ts';"],
  ['page/probe.tsx', "import { render } from 'preact';\nimport { printable } from '../src/base/printable.ts';"],
  ['test/probe.test.ts', "import { Endpoint } from '../src/http/endpoint.ts';\nimport { test } from 'vitest';"],
];

test('Biome accepts allowed imports', () => {
  expect(checked(allowed)).toEqual(allowed.map((arrow) => [...arrow, []]));
});

/** Two files that import each other, the second one only a type. */
const circleIn = (room: string): Arrow[] => [
  [`src/${room}/a.ts`, "import { b } from './b.ts';\nexport const a = b;\nexport type A = number;"],
  [`src/${room}/b.ts`, "import type { A } from './a.ts';\nexport const b: A = 1;"],
];

test('Biome rejects two files of a room that import each other, types included', () => {
  const folders = readdirSync(src, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const rooms = [...folders.map(({ name }) => name), 'v3/gateway', 'v3/rpc', 'v3/locks'];
  const broken = brokenRules(rooms.flatMap(circleIn));
  expect(rooms.filter((_, i) => !broken[2 * i]?.includes('noImportCycles'))).toEqual([]);
});

test.each([
  [
    'a package that package.json does not name',
    'test/probe.ts',
    "import axios from 'axios';",
    'noUndeclaredDependencies',
  ],
  ['a development dependency in src', 'src/cli/probe.ts', "import { test } from 'vitest';", 'noUndeclaredDependencies'],
  ['require()', 'src/http/probe.ts', "const { connect } = require('node:net');", 'noCommonJs'],
])('Biome rejects %s', (_, file, source, rule) => {
  expect(brokenRules([[file, source]])[0]).toContain(rule);
});

const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .map((file) => file.replaceAll('\\', '/'))
  .filter((file) => file.endsWith('.ts'))
  .sort();
const read = (file: string) => readFileSync(join(src, file), 'utf8');

/** Whether a file only re-exports. */
function onlyReExports(source: string): boolean {
  const rest = source
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|\s)\/\/.*$/gm, '$1')
    .replace(/\bexport\s+(?:type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s+from\s+(['"])[^'"]+\1\s*;?/g, '');
  return rest.trim() === '';
}

test('index.ts only re-exports', () => {
  expect(onlyReExports(read('index.ts'))).toBe(true);
});

test.each([
  ["export const x = 1;\nexport { y } from './y.ts';", false],
  ["import { y } from './y.ts';\nexport { y };", false],
  ['export default 1;', false],
  [
    "/** Doc. */\nexport { y, type Z } from './y.ts';\nexport type * from './z.ts'; // why\nexport * as w from './w.ts';",
    true,
  ],
])('onlyReExports() of %j is %s', (source, only) => {
  expect(onlyReExports(source)).toBe(only);
});

test('only streams.ts, which escapes, writes to stdout and stderr', () => {
  const printing = sources.filter((file) => /\bstd(out|err)\.write\b|\bconsole\./.test(read(file)));
  expect(printing).toEqual(['cli/streams.ts']);
});

test('no folder of src holds more than 14 files side by side', () => {
  const counts = new Map<string, number>();
  for (const file of sources) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1);
  expect([...counts].filter(([, count]) => count > 14)).toEqual([]);
});
