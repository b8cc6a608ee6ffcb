/** Requests that cannot be read, or almost. */
import fc from 'fast-check';
import type { Wanted } from './client.ts';

const BODIES = [
  '',
  ' ',
  '{}',
  'null',
  '[]',
  '5',
  '-',
  '"x"',
  'tru',
  'key=YQ==',
  '{key:"YQ=="}',
  '{\'key\':"YQ=="}',
  '{"key":"YQ==",}',
  '{"key":"YQ=="',
  '{"key":"YQ=="}}',
  '{"key":"YQ=="} x',
  '{"key":"YQ=="}{"key":"Yg=="}',
  '{"key" "YQ=="}',
  '{"key":"YQ==" "value":""}',
  '{"key":"a\nb"}',
  '{"key":"\\x"}',
  '{"key":"\\u00zz"}',
  '{"key":"\\u0059Q=="}',
  '{"key":5}',
  '{"key":true}',
  '{"key":{}}',
  '{"key":[]}',
  '{"key":[97]}',
  '{"key":[97,300]}',
  '{"key":["a"]}',
  '{"key":null}',
  '{"key":"a"}',
  '{"key":"YQ"}',
  '{"key":"YQ="}',
  '{"key":"YQ==="}',
  '{"key":"Y Q=="}',
  '{"key":"Y\\nQ=="}',
  '{"key":"=Q=="}',
  '{"key":"_-8="}',
  '{"key":"é"}',
  '{"Key":"YQ=="}',
  '{"key":"YQ==","key":"Yg=="}',
  '{"key":"YQ==","nothing":{"a":[1,{}]}}',
  '{"key":"YQ==","keys_only":true,"keysOnly":false}',
  '{"key":"YQ==","keys_only":"true"}',
  '{"key":"YQ==","keys_only":1}',
  '{"key":"YQ==","prev_kv":"yes"}',
  ...['"x"', '1.5', '1e2', '"1e2"', '1.0', '01', '1.', '1e', '-x', '+1', '.5', 'true', '{}', '[1]'].map(ofLimit),
  ...['"-"', '"1."', '"1e"', '"1e+"', '"tru"', '"[1"', '"\\"', '"\\u00"', '"{\\"a"'].map(ofLimit),
  ...['99999999999999999999', '"99999999999999999999"', '""', '" 1"', '"+1"', '"01"', '"null"', '"true"'].map(ofLimit),
  ...['"UP"', '7', '"7"', '1.5', 'true', '[]', '99999999999', '"ASCEND"'].map(
    (order) => `{"key":"YQ==","sort_order":${order}}`,
  ),
];

function ofLimit(limit: string): string {
  return `{"key":"YQ==","limit":${limit},"lease":${limit}}`;
}

const TRANSACTIONS = [
  '{"success":{}}',
  '{"success":[5]}',
  '{"success":[{}]}',
  '{"success":[{"request_range":null}]}',
  '{"success":[{"request_put":{"key":"YQ=="}},5]}',
  '{"compare":[{"key":"YQ==","target":"CREATE"}]}',
  '{"compare":[{"key":"YQ==","target":9}]}',
  '{"compare":[{"key":"YQ==","target":"NOTHING"}]}',
  '{"compare":[{"key":"YQ==","result":"NOTHING"}]}',
  '{"compare":[{"key":"YQ==","target":"VALUE"}]}',
  '{"compare":[{}]}',
  '{"compare":[[]]}',
];

const CALLS = [
  '/kv/range',
  '/kv/put',
  '/kv/deleterange',
  '/kv/txn',
  '/kv/compaction',
  '/lease/revoke',
  '/lease/keepalive',
];

const post = (path: string, body: string): Wanted => ({ method: 'POST', path: `/v3${path}`, body });

/** A body with one character more, less, or another. Not of transactions: an element `null` ends a connection of etcd 3.4. */
const damaged = fc
  .record({
    body: fc.constantFrom(
      '{"key":"YWI=","value":"eA==","lease":"7","prev_kv":true}',
      '{"key": "YQ==", "range_end": "Yg==", "limit": 12, "keys_only": false}',
      '{"ID":7,"TTL":"1000"} ',
      '{"a":[1,-2.5e3,"\\u00e9\\n",null,{"b":[]}],"key":"YQ=="}',
    ),
    at: fc.nat(70),
    by: fc.constantFrom('', ...'{}[]",:\\0-.eEtnu \n\t\u0001é='),
    drop: fc.nat(1),
  })
  .map(({ body, at, by, drop }) => `${body.slice(0, at)}${by}${body.slice(at + drop)}`);

const METHODS = ['GET', 'PUT', 'DELETE', 'PATCH'];
const PATHS = [
  '/v3',
  '/v3/',
  '/v3beta',
  '/v3alpha/kv/range',
  '/v3/kv/range/',
  '/v3//kv/range',
  '/v3/kv/../kv/range',
  '/v3/kv/nothing',
  '/v3/kv/Range',
  '/v4/kv/range',
];

/** Requests that must get the same answer, byte for byte. */
export const badInput: fc.Arbitrary<Wanted> = fc.oneof(
  { weight: 8, arbitrary: fc.tuple(fc.constantFrom(...CALLS), fc.constantFrom(...BODIES)).map((of) => post(...of)) },
  { weight: 2, arbitrary: fc.constantFrom(...TRANSACTIONS).map((body) => post('/kv/txn', body)) },
  { weight: 8, arbitrary: fc.tuple(fc.constantFrom(...CALLS), damaged).map((of) => post(...of)) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom(...METHODS), fc.constantFrom(...CALLS))
      .map(([method, path]): Wanted => ({ method, path: `/v3${path}`, ...(method === 'GET' ? {} : { body: '{}' }) })),
  },
  { weight: 2, arbitrary: fc.constantFrom(...PATHS).map((path): Wanted => ({ method: 'POST', path, body: '{}' })) },
);
