import { expect, onTestFinished, test } from 'vitest';
import { tour } from '../../../compat/tour.ts';
import { startEtcd } from '../../support/etcd.ts';
import { findEtcd } from '../../support/etcd-member.ts';
import { useBridge } from './use-bridge.ts';

/** These steps write keys that belong to no lock, and then wait for an event of such a key. */
const LEFT_OUT = ['watch', 'watch from a past index', 'watch forever', 'watch an expiry'];

/** What a lock needs, and the pages about the server: a bridge answers as etcd v2 does. */
const OF_LOCKS = [
  'append',
  'append again',
  'queue',
  'delete a directory as a file',
  'delete a full directory',
  'write to the root',
  'watch a key that never changes',
  'machines',
  'members',
  'leader',
  'leader stats',
  'store stats',
  'stats',
  'version',
];

const directory = (key: string, created: number) => ({
  action: 'get',
  children: [],
  created,
  dir: true,
  key,
  modified: created,
  new: false,
  previous: null,
  ttl: false,
  value: null,
});

/** Steps that read or delete what only a refused write would have created: there, a bridge has an empty directory. */
const OF_REFUSED_KEYS: Readonly<Record<string, unknown>> = {
  read: directory('/a', 0),
  get: directory('/a', 0),
  contains: [true, true],
  'read a missing key': directory('/none/at/all', 0),
  'read below a file': directory('/a/b', 0),
  // After two appends.
  list: { ...directory('', 3), children: ['/q/N', '/q/N'] },
  quorum: directory('/a', 3),
  // A queue is not removed with its entries.
  'delete a directory recursively': { code: 108, error: 'EtcdDirNotEmpty' },
  'delete an empty directory': { code: 100, error: 'EtcdKeyNotFound' },
  'delete with a wrong value': { code: 102, error: 'EtcdNotFile' },
  'delete with the right value': { code: 102, error: 'EtcdNotFile' },
  'delete a deleted key': { code: 102, error: 'EtcdNotFile' },
};

test('a bridge answers the requests of python-etcd’s Client as etcd v2 does if locks need them, and refuses other writes', async () => {
  // The etcd under the bridge may have no v2 API.
  const [onV2, onV3] = [await startEtcd({ program: findEtcd(), args: ['--enable-v2'] }), await startEtcd()];
  onTestFinished(async () => {
    await Promise.all([onV2.stop(), onV3.stop()]);
  });
  const { url } = await useBridge({ endpoints: onV3.url });
  const [real = {}, ours] = await Promise.all([onV2.url, url].map((one) => tour(one, '/_locks/tour', LEFT_OUT)));
  const expected = Object.keys(real).map((step) => {
    if (OF_LOCKS.includes(step)) return [step, real[step]];
    return [step, OF_REFUSED_KEYS[step] ?? { code: 107, error: 'EtcdRootReadOnly' }];
  });
  expect(ours).toEqual(Object.fromEntries(expected));
  expect(Object.keys(real)).toEqual(expect.arrayContaining([...OF_LOCKS, ...Object.keys(OF_REFUSED_KEYS)]));
});
