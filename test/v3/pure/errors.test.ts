import { describe, expect, test } from 'vitest';
import {
  EtcdConnectionFailed,
  EtcdException,
  EtcdInsufficientPermissions,
  EtcdUnusableAnswer,
  mayPass,
} from '../../../src/errors.ts';
import { isMembersFault } from '../../../src/http/failover/failures.ts';
import type { WireAnswer } from '../../../src/http/message.ts';
import { decodeToken } from '../../../src/v3/gateway/authentication.ts';
import {
  decodeBody,
  decodeCancellation,
  FailedPrecondition,
  NotFound,
  TokenRefused,
} from '../../../src/v3/gateway/errors.ts';

const answer = (status: number, body: unknown): WireAnswer => ({
  status,
  headers: {},
  body: typeof body === 'string' ? body : JSON.stringify(body),
  sentAt: 0,
});

function errorOf(status: number, body: unknown): EtcdException {
  try {
    decodeBody(answer(status, body));
  } catch (error) {
    return error as EtcdException;
  }
  throw new Error('the answer is no error');
}

test.each([
  ['3.1 to 3.3', { error: 'rpc error: code = NotFound desc = etcdserver: lease not found', code: 5 }],
  ['3.4 and 3.5', { error: 'etcdserver: lease not found', message: 'etcdserver: lease not found', code: 5 }],
  ['3.6', { code: 5, message: 'etcdserver: lease not found' }],
])('an error of etcd %s keeps its code and its text', (_, body) => {
  const error = errorOf(404, body);
  expect(error).toBeInstanceOf(NotFound);
  expect(error).toMatchObject({ message: 'etcdserver: lease not found', errorCode: 5, httpStatus: 404 });
});

test.each([
  [1, EtcdConnectionFailed, true, 'context canceled'],
  [1, EtcdConnectionFailed, true, 'grpc: the client connection is closing'],
  [2, EtcdConnectionFailed, true, 'context deadline exceeded'],
  [3, EtcdException, false, 'etcdserver: key is not provided'],
  [3, TokenRefused, false, 'etcdserver: user name is empty'],
  [3, TokenRefused, false, 'etcdserver: revision of auth store is old'],
  [3, EtcdInsufficientPermissions, false, 'etcdserver: authentication failed, invalid user ID or password'],
  [7, EtcdInsufficientPermissions, false, 'etcdserver: permission denied'],
  [8, EtcdConnectionFailed, false, 'etcdserver: too many requests'],
  [8, EtcdException, false, 'etcdserver: mvcc: database space exceeded'],
  [8, EtcdException, false, 'grpc: received message larger than max (5000000 vs. 4194304)'],
  [9, FailedPrecondition, false, 'etcdserver: lease already exists'],
  [11, EtcdException, false, 'etcdserver: mvcc: required revision has been compacted'],
  [14, EtcdConnectionFailed, true, 'etcdserver: request timed out'],
  [16, TokenRefused, false, 'etcdserver: invalid auth token'],
])('code %i is %o; whether the outcome is unknown: %s (%s)', (code, ErrorClass, outcomeUnknown, message) => {
  // The HTTP status differs between versions, so it must not matter.
  for (const status of [400, 412, 500]) {
    const error = errorOf(status, { code, message });
    expect(error.constructor).toBe(ErrorClass);
    expect(error.outcomeUnknown).toBe(outcomeUnknown);
  }
});

/** How a version of etcd encodes an error, in an answer and in a stream. */
const SHAPES = {
  '3.4': [
    (code: number, message: string) => ({ error: message, message, code }),
    (code: number, message: string) => ({ error: { grpc_code: code, http_code: 503, message, http_status: '' } }),
  ],
  '3.5': [
    (code: number, message: string) => ({ error: message, message, code }),
    (code: number, message: string) => ({ error: { grpc_code: code, http_code: 503, message, http_status: '' } }),
  ],
  '3.6': [
    (code: number, message: string) => ({ code, message }),
    (code: number, message: string) => ({ error: { code, message } }),
  ],
} as const;

/** Messages by which a member says that it cannot serve, each with its code in etcd 3.4, 3.5 and 3.6. From rpctypes/error.go. */
describe.each([
  // Refused before anything is written.
  ['etcdserver: rpc not supported for learner', [14, 14, 9], false],
  ['etcdserver: not capable', [14, 14, 9], false],
  ['etcdserver: no leader', [14, 14, 14], false],
  ['etcdserver: corrupt cluster', [15, 15, 15], false],
  ['etcdserver: too many requests', [8, 8, 8], false],
  // The request may have been proposed.
  ['etcdserver: server stopped', [14, 14, 14], true],
  ['etcdserver: leader changed', [14, 14, 14], true],
  ['etcdserver: request timed out', [14, 14, 14], true],
  ['etcdserver: request timed out, possibly due to previous leader failure', [14, 14, 14], true],
  ['etcdserver: request timed out, possibly due to connection lost', [14, 14, 14], true],
  ['etcdserver: request timed out, waiting for the applied index took too long', [14, 14, 14], true],
  ['etcdserver: unhealthy cluster', [14, 14, 14], true],
  ['etcdserver: request canceled', [1, 1, 1], true],
  ['etcdserver: context deadline exceeded', [4, 4, 4], true],
  ['not a primary lessor', [2, 2, 2], true],
  ['raft proposal dropped', [2, 2, 2], true],
] as const)('%s', (message, codes, outcomeUnknown) => {
  test.each([
    ['3.4', codes[0]],
    ['3.5', codes[1]],
    ['3.6', codes[2]],
  ] as const)('etcd %s (code %i): another member is asked', (version, code) => {
    for (const shape of SHAPES[version]) {
      const error = errorOf(503, shape(code, message));
      expect(error.constructor).toBe(EtcdConnectionFailed);
      expect(error).toMatchObject({ errorCode: code, outcomeUnknown });
      expect(error.message).toContain(message);
      expect(isMembersFault(error)).toBe(true);
      expect(mayPass(error)).toBe(true);
    }
  });
});

test('a login that a learner refuses does not mean that authentication is off', () => {
  const refusal = answer(400, { code: 9, message: 'etcdserver: rpc not supported for learner' });
  expect(() => decodeToken(refusal, 'secret')).toThrow(EtcdConnectionFailed);
  const off = answer(400, { code: 9, message: 'etcdserver: authentication is not enabled' });
  expect(decodeToken(off, 'secret')).toEqual({ text: undefined });
});

test.each(['404 page not found\n', 'Not Found\n', '{"message":"Not Found"}', '{"code":5, "message":"Not Found"}'])(
  'a 404 that is not about a key or a lease means that there is no gateway: %j',
  (body) => {
    const error = errorOf(404, body);
    expect(error).toBeInstanceOf(EtcdUnusableAnswer);
    expect(error.message).toContain('no v3 gateway');
  },
);

test.each([
  [200, '<html>welcome</html>'],
  [200, '[]'],
  [403, 'forbidden by the proxy'],
  [400, { error: 'no code' }],
])('an answer of another program is refused: %i %j', (status, body) => {
  expect(errorOf(status, body)).toBeInstanceOf(EtcdUnusableAnswer);
});

test.each([
  ['rpc error: code = Unauthenticated desc = etcdserver: invalid auth token', TokenRefused],
  ['rpc error: code = InvalidArgument desc = etcdserver: user name is empty', TokenRefused],
  ['rpc error: code = PermissionDenied desc = etcdserver: permission denied', EtcdInsufficientPermissions],
  ['rpc error: code = constructor desc = etcdserver: no leader', EtcdConnectionFailed],
  ['etcdserver: no leader', EtcdConnectionFailed],
  ['', EtcdConnectionFailed],
])('a watch that is refused with %j is %o', (reason, ErrorClass) => {
  expect(decodeCancellation(reason).constructor).toBe(ErrorClass);
});

test('a failure of a proxy leaves the outcome unknown', () => {
  expect(errorOf(502, 'bad gateway')).toMatchObject({ outcomeUnknown: true, httpStatus: 502 });
  expect(errorOf(502, 'bad gateway')).toBeInstanceOf(EtcdConnectionFailed);
});
