import { describe, expect, test } from 'vitest';
import { EtcdClient, Lock, LockManager } from '../../src/index.ts';
import { runScript } from '../support/script.ts';

describe.each([
  ['LockManager', (client: unknown) => new LockManager(client as EtcdClient)],
  ['Lock', (client: unknown) => new Lock(client as EtcdClient, 'x')],
])('%s', (name, make) => {
  test.each([
    ['nothing', undefined, 'undefined'],
    ['null', null, 'null'],
    ['options', { ttl: 30 }, '[object Object]'],
    ['the class of the client', EtcdClient, '[object Function]'],
    ['a store without its client', new EtcdClient().store, '[object Object]'],
    ['a store that is no store', { store: {} }, '[object Object]'],
    ['a URL, which may contain a password', 'http://root:secret@a:2379', 'a string'],
  ])('refuses %s in place of a client', (_, client, shown) => {
    expect(() => make(client)).toThrow(
      new TypeError(`${name} needs a client such as new EtcdClient() as its first argument, got ${shown}`),
    );
  });
});

test('a program in JavaScript that forgot the client fails in the constructors', async () => {
  const { stdout } = await runScript(`
    import { Lock, LockManager } from 'etcd-v2-lock';
    for (const make of [() => new LockManager(), () => new Lock(), () => new Lock('x')])
      try { make(); } catch (error) { console.log(error.name, error.message); }
  `);
  expect(stdout.split('\n')).toEqual([
    'TypeError LockManager needs a client such as new EtcdClient() as its first argument, got undefined',
    'TypeError Lock needs a client such as new EtcdClient() as its first argument, got undefined',
    'TypeError Lock needs a client such as new EtcdClient() as its first argument, got a string',
    '',
  ]);
});
