import { expect, test } from 'vitest';
import { grammarOf } from '../../../src/cli/completion/grammar.ts';
import { nameUnderCursor } from '../../../src/cli/completion/names.ts';
import { program } from '../../../src/cli/program.ts';

const grammar = grammarOf(program());

test.each([
  ['etcd-v2-lock inspect nig', 'nig', {}],
  ['etcd-v2-lock inspect ', '', {}],
  ['etcd-v2-lock ls', undefined, {}],
  ['etcd-v2-lock ls jobs/', 'jobs/', {}],
  ['etcd-v2-lock --api v3 --endpoints http://a:2379 run --ttl 5 x', 'x', { api: 'v3', endpoints: 'http://a:2379' }],
  ['etcd-v2-lock watch --endpoints=http://a:2379 "my', 'my', { endpoints: 'http://a:2379' }],
  ["etcd-v2-lock --password 'a b' elect n", 'n', { password: 'a b' }],
  ['etcd-v2-lock release --json r', 'r', {}],
])('the name under the cursor of %j is %j', (line, prefix, connection) => {
  const found = nameUnderCursor(grammar, line);
  expect(found?.prefix).toBe(prefix);
  if (found) expect(found.connection).toMatchObject(connection);
});

test.each([
  'etcd-v2-lock',
  'etcd-v2-lock ',
  'etcd-v2-lock ins',
  'etcd-v2-lock nosuch x',
  'etcd-v2-lock inspect --js',
  'etcd-v2-lock inspect one two',
  'etcd-v2-lock run name comm',
  'etcd-v2-lock run --ttl 5',
  'etcd-v2-lock completion ba',
  'etcd-v2-lock doctor x',
])('under the cursor of %j is no name of a lock', (line) => {
  expect(nameUnderCursor(grammar, line)).toBeUndefined();
});
