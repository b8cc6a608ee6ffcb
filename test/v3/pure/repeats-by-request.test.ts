import { expect, onTestFinished, test, vi } from 'vitest';
import { Cluster } from '../../../src/http/cluster.ts';
import type { Repeat } from '../../../src/http/failover/round.ts';
import { V3Client } from '../../../src/v3/client.ts';
import type { LockRequests } from '../../../src/v3/rpc/requests.ts';

const KEY = '/_locks/job/1';
const GUARD = { value: 'mine', rank: 4n, modified: 4n };

const append = { value: 'mine', lease: '1', whole: false, unanswered: { count: 0 } };

test.each<[string, (requests: LockRequests) => Promise<unknown>, Repeat]>([
  ['an append', (requests) => requests.entries.append(KEY, append), 'hedged'],
  ['the grant of a lease', (requests) => requests.leases.grant('1', 60, {}), 'hedged'],
  ['a renewal', (requests) => requests.leases.renew('1', [KEY], {}), 'hedged'],
  ['a move to another lease', (requests) => requests.entries.move(KEY, { ...GUARD, lease: '2' }, {}), 'hedged'],
  ['a removal', (requests) => requests.entries.remove(KEY, GUARD, {}), 'hedged'],
  ['a removal without a condition', (requests) => requests.entries.delete(KEY, {}), 'hedged'],
  ['a revocation', (requests) => requests.leases.revoke('1', {}), 'hedged'],
  ['a read of the entry before the own one', (requests) => requests.entries.neighbours(KEY, 4n, {}), 'hedged'],
  ['a read of the queue', (requests) => requests.listings.read('/_locks/job', {}), 'hedged'],
  ['a watch', (requests) => requests.watches.changed(KEY, { from: 5n }), 'poll'],
])('%s is sent again as far as that is safe', async (_, request, repeat) => {
  const call = vi.spyOn(Cluster.prototype, 'call').mockRejectedValue(new Error('not sent'));
  onTestFinished(() => call.mockRestore());
  const { requests } = new V3Client({ endpoints: 'http://127.0.0.1:1' });
  await expect(request(requests)).rejects.toThrow('not sent');
  expect(call.mock.calls.map(([kind]) => kind)).toEqual([repeat]);
});
