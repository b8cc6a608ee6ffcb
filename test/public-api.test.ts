import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as api from '../src/index.ts';
import * as python from '../src/python/index.ts';
import * as server from '../src/server/index.ts';
import { packageJson } from './support/readme.ts';
import { runScript } from './support/script.ts';

const VALUES = [
  'EtcdClient',
  'EtcdClientClosed',
  'EtcdClusterIdChanged',
  'EtcdConnectionFailed',
  'EtcdException',
  'EtcdInsufficientPermissions',
  'EtcdKeysLeft',
  'EtcdLockExpired',
  'EtcdLockHeld',
  'EtcdLockLimitDiffers',
  'EtcdLockLost',
  'EtcdLockReleased',
  'EtcdLockTimeout',
  'EtcdStaleToken',
  'EtcdTlsFailed',
  'EtcdUnusableAnswer',
  'EtcdValueError',
  'EtcdWatchTimedOut',
  'Fence',
  'Lock',
  'LockManager',
];

const TYPES = [
  'AcquireOptions',
  'CampaignOptions',
  'CloseOptions',
  'Contender',
  'Election',
  'ElectionOptions',
  'EndpointFailure',
  'Entry',
  'EtcdApi',
  'EtcdClientOptions',
  'FencingTokens',
  'Held',
  'HeldLocks',
  'HoldOptions',
  'Leader',
  'LockClient',
  'LockHolder',
  'LockInfo',
  'LockManagerOptions',
  'LockManagerSnapshot',
  'LockMode',
  'LockOptions',
  'MemberHealth',
  'ObserveOptions',
  'OnceJob',
  'OnceOptions',
  'OpenHeld',
  'OpenHeldLocks',
  'Pem',
  'PingOptions',
  'Raise',
  'Renewal',
  'RecordedTick',
  'ReleaseOptions',
  'RequestMessages',
  'RequestOptions',
  'RequestOutcome',
  'RequestTrace',
  'Term',
  'Tick',
  'TickOutcome',
  'TickReport',
];

/** The declarations that a user's editor shows, with their docstrings. */
const reference = readFileSync(new URL('../docs/api/etcd-v2-lock.md', import.meta.url), 'utf8');

/** The members of a class in the reference: properties in tables, accessors and methods in headings. */
function membersOf(name: string): string[] {
  const [chapter = ''] = reference.split(`\n### ${name}\n`).at(1)?.split('\n### ') ?? [];
  const properties = [...chapter.matchAll(/^\| <a id="property-[^|]*`(\w+)\??` \|/gm)];
  const others = [...chapter.matchAll(/^##### (?!Constructor$)\W*(\w+)/gm)];
  return [...properties, ...others].map(([, member = '']) => member).sort();
}

test('the former name of EtcdLockTimeout is the same class, and its errors keep their name and code', () => {
  expect(api.EtcdWatchTimedOut).toBe(api.EtcdLockTimeout);
  const error = new api.EtcdLockTimeout('why', { reason: 'held' });
  expect(error).toMatchObject({ name: 'EtcdWatchTimedOut', code: 'ETCD_WATCH_TIMED_OUT' });
});

test('etcd-v2-lock exports exactly these values', () => {
  expect(Object.keys(api).sort()).toEqual(VALUES);
});

test('the API reference has exactly the exported values and types', () => {
  const names = [...reference.matchAll(/^### (\w+)/gm)].map(([, name = '']) => name);
  expect(names.sort()).toEqual([...VALUES, ...TYPES].sort());
});

test('signatures name AbortSignal, and none of the types behind it', () => {
  expect(reference).toContain('`AbortSignal`');
  expect(reference).not.toMatch(
    /\b(?:Scope|Source|PendingWork|KeysApi|LockStore|QueueStore|Ticket|Append|Conditions)\b/,
  );
});

test('a client, a manager and a lock have exactly these public members', () => {
  expect(membersOf('EtcdClient')).toEqual(['asyncDispose', 'close', 'clusterId', 'lockPrefix', 'ping']);
  expect(membersOf('LockManager')).toEqual(['acquire', 'elect', 'once', 'query', 'release', 'request']);
  expect(membersOf('Lock')).toEqual([
    'acquire',
    'asyncDispose',
    'contenders',
    'fencingToken',
    'fencingTokens',
    'isAcquired',
    'isTaken',
    'lockKey',
    'name',
    'path',
    'release',
    'setUuid',
    'signal',
    'uuid',
  ]);
});

test('every constructor in the reference says what it creates', () => {
  const [, ...constructors] = reference.split(/^> \*\*new \w+\*\*/m);
  expect(constructors.length).toBeGreaterThan(3);
  for (const text of constructors) expect(text.split('\n\n')[1]).toMatch(/^Creates /);
});

test('etcd-v2-lock/server exports exactly Bridge and EmbeddedEtcd', () => {
  expect(Object.keys(server)).toEqual(['Bridge', 'EmbeddedEtcd']);
});

test('etcd-v2-lock/python-etcd exports exactly Lock, the same class as etcd-v2-lock', () => {
  expect({ ...python }).toEqual({ Lock: api.Lock });
});

test.each(['prom-client', 'opentelemetry'])('etcd-v2-lock/%s exports exactly observeLocks', async (entry) => {
  expect(Object.keys(await import(`etcd-v2-lock/${entry}`))).toEqual(['observeLocks']);
});

const ENTRIES = ['.', './server', './prom-client', './opentelemetry', './python-etcd'];

test.each([
  ['imported', (entry: string) => `await import('${entry}')`],
  ['required', (entry: string) => `createRequire(import.meta.url)('${entry}')`],
])('each entry point can be %s', async (_, loading) => {
  expect(Object.keys(packageJson.exports)).toEqual([...ENTRIES, './package.json']);
  const names = ENTRIES.map((entry) => loading(entry.replace('.', 'etcd-v2-lock')));
  const { stdout, stderr } = await runScript(
    `import { createRequire } from 'node:module'; for (const entry of [${names}]) console.log(Object.keys(entry).length > 0);`,
  );
  expect({ stdout, stderr }).toEqual({ stdout: 'true\n'.repeat(ENTRIES.length), stderr: '' });
});
