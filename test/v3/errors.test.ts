import { expect, test } from 'vitest';
import {
  EtcdConnectionFailed,
  EtcdException,
  EtcdInsufficientPermissions,
  EtcdUnusableAnswer,
} from '../../src/errors.ts';
import type { WireAnswer } from '../../src/http/message.ts';
import { decodeBody, decodeCancellation, FailedPrecondition, NotFound, TokenRefused } from '../../src/v3/errors.ts';

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
