import { expect, test } from 'vitest';
import { base64 } from '../support/gateway.ts';
import type { QueueEvent } from './history.ts';
import { revokedByEtcd } from './revoked.ts';
import type { Request } from './tcp-proxy.ts';

const TTL = 5;
const KEY = '/_locks/x/abc';
const gone: QueueEvent = {
  at: 9000,
  index: 12,
  lock: 'x',
  key: KEY,
  rank: 7n,
  action: 'gone',
  value: 'abc',
  lease: '77',
};

const request = (at: number, path: string, message: object, result?: object): Request => ({
  method: 'POST',
  path: `/v3${path}`,
  body: JSON.stringify(message),
  at,
  ...(result && { answer: `HTTP/1.1 200 OK\r\n\r\n${JSON.stringify({ result })}` }),
});

const renewed = (at: number, result?: object, id = '77') => request(at, '/lease/keepalive', { ID: id }, result);
const there = { ID: '77', TTL: '5' };
const removal = (rank: string, at = 8900, to: object = { create_revision: rank }) =>
  request(at, '/kv/txn', {
    compare: [{ key: base64(KEY), result: 'EQUAL', ...to }],
    success: [{ request_delete_range: { key: base64(KEY) } }],
  });

test('an entry that is gone within the TTL of its last renewal, without a request, was removed by etcd', () => {
  expect(revokedByEtcd([gone], [renewed(8000, there)], TTL)).toEqual([gone]);
  expect(revokedByEtcd([gone], [renewed(8000, there), removal('6')], TTL)).toEqual([gone]);
  const ofEarlier = removal('7', 8900, { mod_revision: '6' });
  expect(revokedByEtcd([gone], [renewed(8000, there), ofEarlier], TTL)).toEqual([gone]);
  expect(revokedByEtcd([gone], [removal('7', 9200), renewed(8000, there)], TTL)).toEqual([gone]);
});

test.each<[string, Request[]]>([
  ['its lease had not been renewed for its TTL', [renewed(3900, there)]],
  ['its renewal was not answered', [renewed(8000)]],
  ['its renewal was answered without a TTL', [renewed(8000, { ID: '77' })]],
  ['only another lease was renewed', [renewed(8000, there, '78')]],
  [
    'a leader that was replaced answered the renewal',
    [renewed(7900, { header: { raft_term: '4' } }, '78'), renewed(8000, { header: { raft_term: '3' }, ...there })],
  ],
  ['a client removed it', [renewed(8000, there), removal('7')]],
  ['a client removed it as it was written later', [renewed(8000, there), removal('7', 8900, { mod_revision: '8' })]],
  ['a client ended its lease', [renewed(8000, there), request(8900, '/kv/lease/revoke', { ID: '77' })]],
])('etcd made no mistake if %s', (_, requests) => {
  expect(revokedByEtcd([gone], requests, TTL)).toEqual([]);
});

test('an entry that was queued was not removed', () => {
  expect(revokedByEtcd([{ ...gone, action: 'queued' }], [renewed(8000, there)], TTL)).toEqual([]);
});
