// Every name in the README and in docs/ exists, and their tables are complete.
import { describe, expect, test } from 'vitest';
import * as api from '../src/index.ts';
import { freshName, useClient } from './support/locks.ts';
import { between, pages, quotedIn, read, rowsOf } from './support/readme.ts';

const { Lock, LockManager } = api;

/** Names of an object's own properties and of its class's members. */
const membersOf = (object: object): string[] => [
  ...Object.keys(object),
  ...Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== 'constructor'),
];

const GUIDE = 'docs/lock-manager.md';
const everything = pages.map(({ text }) => text).join('\n');

test('the package exports the errors that the docs name', () => {
  const errors = [...everything.matchAll(/`(Etcd\w+)`/g)].map(([, name]) => name);
  expect(new Set(errors).size).toBeGreaterThan(10);
  expect(Object.keys(api)).toEqual(expect.arrayContaining(errors));
});

test('the members of Lock that the docs name exist', () => {
  const lock = new Lock(useClient(), freshName());
  const rows = between('docs/python-etcd.md', '| python-etcd |', '## `blocking');
  const named = [...rows.matchAll(/`(?:await )?lock\.([a-z]\w*)(?:\(.*?\))?`/g)].map(([, name = '']) => name);
  const ours = named.filter((name) => !name.includes('_'));
  expect(ours.length).toBeGreaterThan(5);
  expect(membersOf(lock)).toEqual(expect.arrayContaining(ours));
});

describe('in the guide to LockManager', () => {
  const options = rowsOf(between(GUIDE, '## Options', 'The callback gets'));
  const nameOf = ([cell]: readonly string[]): string => quotedIn(cell)[0] ?? '';
  const isStarred = ([cell = '']: readonly string[]): boolean => cell.endsWith('*');
  const byRequest = options.filter((row) => !isStarred(row)).map(nameOf);
  const byManager = options.filter(isStarred).map(nameOf);

  test.each(byRequest)('request(), and not the constructor, takes and checks its option %s', async (option) => {
    const client = useClient();
    expect(() => new LockManager(client, { [option]: undefined })).toThrow(`unknown option "${option}"`);
    const locks = new LockManager(client);
    await expect(locks.request('x', { [option]: Symbol('bad') }, () => {})).rejects.toThrow(`${option} must be`);
  });

  test.each(byManager)('the constructor checks its option %s', (option) => {
    const client = useClient();
    expect(() => new LockManager(client, { [option]: Symbol('bad') })).toThrow(`${option} must be`);
  });

  test('the table of options lists those of a request and those of the manager alone', () => {
    expect(byRequest).toEqual(['mode', 'limit', 'ifAvailable', 'signal', 'reentrant']);
    expect(byManager).toEqual(['timeout', 'ttl', 'identity', 'label', 'holdAtLeast', 'maxHold', 'margin']);
  });

  test('the members of LockManager that the docs name exist', () => {
    const named = [...everything.matchAll(/\blocks\.(\w+)\(/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(2);
    expect(membersOf(new LockManager(useClient()))).toEqual(expect.arrayContaining(named));
  });

  test('the table of the members of `held` is complete', async () => {
    const rows = rowsOf(between(GUIDE, 'The callback gets', '## Choosing'));
    const named = rows.flatMap(([cell]) => quotedIn(cell)).map((text) => text.replace('held.', '').replace('()', ''));
    const members = await new LockManager(useClient()).request(freshName(), membersOf);
    expect(named.sort()).toEqual(members.sort());
  });

  test('the entries of query() have the fields that the guide names', async () => {
    const [, fields = ''] = /for \(const \{ (.*) \} of \[\.\.\.held/.exec(everything) ?? [];
    const name = freshName();
    const locks = new LockManager(useClient());
    const { held } = await locks.request(name, () => locks.query(name));
    expect(held.map(membersOf)).toEqual([expect.arrayContaining(fields.split(', '))]);
  });
});

test('docs/errors.md lists each exported error with its code', () => {
  const listed = rowsOf(between('docs/errors.md', '| error and its', 'If `outcomeUnknown`')).map(([cell]) =>
    quotedIn(cell),
  );
  const classes = [
    ...read('src/errors.ts').matchAll(/^export class (Etcd\w+)[\s\S]*?\bcode(?:: string)? = '(\w+)';$/gm),
  ];
  const exported = classes.map(([, name = '', code = '']) => [name, code]).filter(([name = '']) => name in api);
  expect(exported.length).toBeGreaterThan(10);
  expect(listed.filter(([name]) => name?.startsWith('Etcd')).sort()).toEqual(exported.sort());
});
