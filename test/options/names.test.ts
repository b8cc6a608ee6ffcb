import { describe, expect, test } from 'vitest';
import { checkOptionNames } from '../../src/base/option-names.ts';
import { EtcdClient, Lock, LockManager } from '../../src/index.ts';
import { EmbeddedEtcd } from '../../src/server/index.ts';
import { V2Client } from '../../src/v2/client.ts';
import { closedEndpoint } from '../support/clients.ts';
import { rejection } from '../support/locks.ts';
import { runScript } from '../support/script.ts';
import { COMPILE, runInUserProject, strictTsconfig } from '../support/user-project.ts';

/** Nothing listens there: a call that sent a request would reject with another error. */
const client = new V2Client({ endpoints: await closedEndpoint() });
const locks = new LockManager(client);

type Call = (options: never) => unknown;

/** Everything public that takes an options object, with the rest of its arguments. */
const OBJECTS: Readonly<Record<string, Call>> = {
  'new EtcdClient': (options) => new EtcdClient(options),
  'client.get': (options) => client.get('/k', options),
  'client.set': (options) => client.set('/k', 'v', options),
  'client.createInOrder': (options) => client.createInOrder('/k', 'v', options),
  'client.renew': (options: object) => client.renew('/k', { prevValue: 'v', prevIndex: 1, ttl: 5, ...options }),
  'client.delete': (options) => client.delete('/k', options),
  'client.watch': (options) => client.watch('/k', options),
  'client.version': (options) => client.version(options),
  'client.machines': (options) => client.machines(options),
  'client.members': (options) => client.members(options),
  'client.close': (options) => new EtcdClient().close(options),
  'new LockManager': (options) => new LockManager(client, options),
  'locks.request': (options) => locks.request('x', options, () => expect.unreachable()),
  'locks.acquire': (options) => locks.acquire('x', options),
  'new Lock': (options) => new Lock(client, 'x', options),
  'lock.acquire': (options) => new Lock(client, 'x').acquire(options),
  'EmbeddedEtcd.start': (options) => EmbeddedEtcd.start(options),
};

const errorOf = (object: string, options: unknown): Promise<unknown> =>
  rejection((async () => OBJECTS[object]?.(options as never))());

describe.each(Object.keys(OBJECTS))('%s', (object) => {
  test('refuses an unknown option before any request, even if its value is undefined', async () => {
    for (const value of [5, undefined]) {
      const error = await errorOf(object, { nonsense: value });
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toHaveProperty('message', expect.stringMatching(/^unknown option "nonsense": the options are \w+/));
    }
  });

  test.each(['constructor', '__proto__', 'toString'])(
    'refuses an own option with the inherited name %s',
    async (name) => {
      const options = Object.fromEntries([[name, 5]]);
      expect(await errorOf(object, options)).toHaveProperty('message', expect.stringContaining(`option "${name}"`));
    },
  );
});

test.each(Object.keys(OBJECTS).filter((object) => object !== 'client.renew'))(
  '%s refuses what is not an object of options',
  async (object) => {
    for (const options of [null, 5, () => {}, [], new Map([['ttl', 5]]), AbortSignal.timeout(5)]) {
      const error = await errorOf(object, options);
      expect(error).toBeInstanceOf(TypeError);
      expect(error).toHaveProperty('message', expect.stringMatching(/^options must be an object, got /));
    }
  },
);

test('a URL in place of the options is refused without showing it, because it may contain a password', () => {
  const make = () => new EtcdClient('http://root:secret@a:2379' as never);
  expect(make).toThrow(
    new TypeError('options must be an object such as { endpoints: "http://127.0.0.1:2379" }, got a string'),
  );
});

test.each([
  ['new EtcdClient', 'endpoint', 'did you mean "endpoints"?'],
  ['new EtcdClient', 'url', 'did you mean "endpoints"?'],
  ['new EtcdClient', 'port', 'did you mean "endpoints"?'],
  ['new EtcdClient', 'host', 'did you mean "endpoints"?'],
  ['new EtcdClient', 'hosts', 'did you mean "endpoints"?'],
  ['new EtcdClient', 'servers', 'did you mean "endpoints"?'],
  ['new EtcdClient', 'timeout', 'did you mean "readTimeout"?'],
  ['new EtcdClient', 'timeoutMs', 'use "readTimeout", in seconds'],
  ['new EtcdClient', 'user', 'did you mean "username"?'],
  ['new EtcdClient', 'ca_cert', 'did you mean "ca"?'],
  ['new EtcdClient', 'lock_prefix', 'did you mean "lockPrefix"?'],
  ['new EtcdClient', 'srv_domain', 'did you mean "srvDomain"?'],
  ['new EtcdClient', 'read_timeout', 'did you mean "readTimeout"?'],
  ['new EtcdClient', 'version_prefix', 'did you mean "versionPrefix"?'],
  ['new EtcdClient', 'expected_cluster_id', 'did you mean "expectedClusterId"?'],
  [
    'new EtcdClient',
    'allow_reconnect',
    'the options are endpoints, randomizeEndpoints, srvDomain, srvName, followMembers, proxyFromEnvironment, readTimeout,',
  ],
  ['client.set', 'prev_exist', 'did you mean "prevExist"?'],
  ['client.get', 'qourum', 'did you mean "quorum"?'],
  ['client.watch', 'waitIndex', 'use "after", whose value is one less'],
  ['client.version', 'timeout', 'did you mean "attemptTimeout"?'],
  ['client.close', 'timeoutMs', 'use "timeout", in seconds'],
  ['new LockManager', 'ttlMs', 'use "ttl", in seconds'],
  ['new LockManager', 'lockTtl', 'did you mean "ttl"?'],
  ['new LockManager', 'lock_ttl', 'did you mean "ttl"?'],
  ['new LockManager', 'TTL', 'did you mean "ttl"?'],
  ['locks.request', 'timeoutMs', 'use "timeout", in seconds'],
  ['locks.request', 'timeoutInSeconds', 'use "timeout", in seconds'],
  ['locks.request', 'singal', 'did you mean "signal"?'],
  ['locks.request', 'blocking', 'use "ifAvailable", which is its opposite'],
  [
    'locks.request',
    'margin',
    'the options are ttl, timeout, identity, label, holdAtLeast, maxHold, mode, limit, ifAvailable,',
  ],
  ['locks.acquire', 'ifavailable', 'did you mean "ifAvailable"?'],
  ['locks.acquire', 'steal', 'a holder cannot be forced to stop'],
  ['lock.acquire', 'ttl', 'did you mean "lockTtl"?'],
  ['lock.acquire', 'ttlMs', 'use "lockTtl", in seconds'],
  ['lock.acquire', 'lock_ttl', 'did you mean "lockTtl"?'],
  ['lock.acquire', 'keep_alive', 'did you mean "keepAlive"?'],
  ['lock.acquire', 'ifAvailable', 'use "blocking", which is its opposite'],
  ['EmbeddedEtcd.start', 'hostname', 'did you mean "host"?'],
  ['EmbeddedEtcd.start', 'foo', 'the options are port, host'],
])('%s with %s', async (object, name, advice) => {
  const error = await errorOf(object, { [name]: 5 });
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toHaveProperty('message', expect.stringMatching(`^unknown option "${name}": `));
  expect((error as Error).message).toContain(advice);
});

test('an unprintable or long name is shown in one line', async () => {
  for (const name of ['a\nb\u202e', 'x'.repeat(10_000)]) {
    const { message } = (await errorOf('locks.acquire', { [name]: 5 })) as Error;
    expect(message).not.toMatch(/[\n\u202e]/);
    expect(message.length).toBeLessThan(300);
  }
});

test('inherited properties are ignored, whatever their names', () => {
  class Settings {
    ttl = 5;
    get description(): string {
      return 'not an option';
    }
    describe(): void {}
  }
  const inheriting = Object.create({ nonsense: 5 }) as object;
  const bare = Object.assign(Object.create(null) as object, { ttl: 5 });
  for (const options of [new Settings(), inheriting, bare])
    expect(() => checkOptionNames(options, { ttl: true })).not.toThrow();
});

test('a program in JavaScript gets the messages', async () => {
  const { stdout } = await runScript(`
    import { EtcdClient, LockManager } from 'etcd-v2-lock';
    const say = (error) => console.log(error.name + ': ' + error.message);
    try { new EtcdClient({ endpoint: 'http://a:2379' }); } catch (error) { say(error); }
    await new LockManager(new EtcdClient()).request('x', { timeoutMs: 500 }, () => {}).catch(say);
  `);
  expect(stdout.split('\n')).toEqual([
    'TypeError: unknown option "endpoint": did you mean "endpoints"?',
    'TypeError: unknown option "timeoutMs": use "timeout", in seconds',
    '',
  ]);
});

test('a program in TypeScript is refused by the compiler, and by the package where the compiler cannot see it', async () => {
  const source = `
    import { EtcdClient, LockManager } from 'etcd-v2-lock';
    // @ts-expect-error
    const make = () => new EtcdClient({ endpoint: 'http://a:2379' });
    const options = { ttl: 5, timeoutMs: 500 };
    const locks = new LockManager(new EtcdClient());
    for (const call of [async () => make(), () => locks.acquire('x', options)])
      await call().catch((error) => console.log(error.message));
  `;
  const files = { 'main.ts': source, 'tsconfig.json': strictTsconfig() };
  expect(await runInUserProject(files, [COMPILE, ['out/main.js']])).toEqual({
    code: 0,
    output:
      'unknown option "endpoint": did you mean "endpoints"?\nunknown option "timeoutMs": use "timeout", in seconds\n',
  });
});
