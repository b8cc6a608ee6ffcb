import { expect, onTestFinished, test, vi } from 'vitest';
import { Cluster } from '../../../src/http/cluster.ts';
import type { Repeat } from '../../../src/http/failover/round.ts';
import { V2Client } from '../../../src/v2/client.ts';

const KEY = '/_locks/job/00000000000000000004';

test.each<[string, (client: V2Client) => Promise<unknown>, Repeat]>([
  ['an append', (client) => client.createInOrder('/_locks/job', 'mine', { ttl: 60 }), 'never'],
  ['an unconditional write', (client) => client.set(KEY, 'mine'), 'never'],
  ['a write if the key is missing', (client) => client.set(KEY, 'mine', { prevExist: false }), 'never'],
  ['a write if the key exists', (client) => client.set(KEY, 'mine', { prevExist: true }), 'never'],
  ['a write that expects a value', (client) => client.set(KEY, 'mine', { prevValue: 'other' }), 'safe'],
  ['a write that expects an index', (client) => client.set(KEY, 'mine', { prevIndex: 4 }), 'safe'],
  ['a removal', (client) => client.delete(KEY), 'safe'],
  ['a removal of a directory', (client) => client.delete('/_locks/job', { dir: true }), 'safe'],
  ['a removal that expects a value', (client) => client.delete(KEY, { prevValue: 'mine' }), 'safe'],
  ['a removal that expects an index', (client) => client.delete(KEY, { prevIndex: 4 }), 'hedged'],
  ['a renewal', (client) => client.renew(KEY, { prevValue: 'mine', prevIndex: 4, ttl: 60 }), 'hedged'],
  ['a read', (client) => client.get(KEY), 'hedged'],
  ['a watch', (client) => client.watch(KEY, { after: 4 }), 'poll'],
])('%s is sent again as far as that is safe', async (_, request, repeat) => {
  const call = vi.spyOn(Cluster.prototype, 'call').mockRejectedValue(new Error('not sent'));
  onTestFinished(() => call.mockRestore());
  await expect(request(new V2Client({ endpoints: 'http://127.0.0.1:1' }))).rejects.toThrow('not sent');
  expect(call.mock.calls.map(([kind]) => kind)).toEqual([repeat]);
});
