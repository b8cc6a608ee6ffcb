import { expect, test } from 'vitest';
import { EtcdClient } from '../../../src/client.ts';
import { LockManager } from '../../../src/manager/manager.ts';

test.each([
  [{ lockPrefix: '' }, 'lockPrefix'],
  [{ versionPrefix: 'v2 ' }, 'versionPrefix'],
  [{ endpoints: [] }, 'endpoints'],
])('a client of both APIs refuses the option %j', (options, message) => {
  expect(() => new EtcdClient({ api: 'both', ...options })).toThrow(message);
});

test('a client of both APIs takes the options of either', async () => {
  const client = new EtcdClient({ api: 'both', lockPrefix: '/locks', versionPrefix: '/v2' });
  expect(client.lockPrefix).toBe('/locks');
  expect(() => client.surveyor).toThrow('use api "v2" or "v3"');
  await client.close();
});

test.each(['', '/a', 'a//b', 'a/../b'])('a name that is invalid on v2 is refused: %j', async (name) => {
  const client = new EtcdClient({ api: 'both' });
  await expect(new LockManager(client).acquire(name)).rejects.toThrow('lock name');
  await client.close();
});
