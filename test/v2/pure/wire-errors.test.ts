import { describe, expect, test } from 'vitest';
import * as errors from '../../../src/errors.ts';
import { decodeChange, decodeSnapshot } from '../../../src/v2/wire.ts';
import { failed, wireAnswer } from '../../support/v2-answers.ts';

const valueErrors = [200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212];

describe('each of etcd’s codes has a class', () => {
  test.each<[number, number, typeof errors.EtcdException]>([
    [100, 404, errors.EtcdKeyNotFound],
    [101, 412, errors.EtcdCompareFailed],
    [102, 403, errors.EtcdNotFile],
    [104, 400, errors.EtcdNotDir],
    [105, 412, errors.EtcdAlreadyExist],
    [107, 403, errors.EtcdRootReadOnly],
    [108, 403, errors.EtcdDirNotEmpty],
    [110, 401, errors.EtcdInsufficientPermissions],
    ...valueErrors.map((code) => [code, 400, errors.EtcdValueError] as [number, number, typeof errors.EtcdValueError]),
    [300, 500, errors.EtcdException],
    [301, 500, errors.EtcdLeaderElectionInProgress],
    [400, 400, errors.EtcdWatcherCleared],
    [401, 400, errors.EtcdEventIndexCleared],
    [999, 400, errors.EtcdException],
  ])('code %i with status %i', (code, status, ErrorClass) => {
    const error = refusal(status, failed(code));
    expect(error.constructor).toBe(ErrorClass);
    expect(error).toMatchObject({
      errorCode: code,
      httpStatus: status,
      index: 6,
      cause: '/x',
      message: 'refused (/x)',
    });
  });
});

test('an error keeps etcd’s text, including non-ASCII characters', () => {
  const error = refusal(412, failed(101, 'Compare failed', '[umläut 中文 != u1]'));
  expect(error.message).toBe('Compare failed ([umläut 中文 != u1])');
  expect(error.cause).toBe('[umläut 中文 != u1]');
});

test('the message of an error without a cause is etcd’s message', () => {
  const error = refusal(404, { errorCode: 100, message: 'Key not found', index: 3 });
  expect(error.message).toBe('Key not found');
  expect(error.cause).toBeUndefined();
});

test('an error’s index comes from the header if the body has none', () => {
  expect(refusal(404, { errorCode: 100, message: 'Key not found' }).index).toBe(7);
  expect(refusal(404, { errorCode: 100, message: 'Key not found' }, {}).index).toBeUndefined();
});

test.each<[string, number, unknown, boolean]>([
  ['an unsettled raft request', 500, failed(300), true],
  ['no leader', 500, failed(301), true],
  ['a failed condition', 412, failed(101), false],
  ['a missing key', 404, failed(100), false],
  ['a gateway’s 502', 502, '<html>Bad Gateway</html>', true],
  ['a gateway’s 503', 503, '', true],
  ['a page with status 200', 200, '<html>Welcome</html>', true],
  ['a page with status 404', 404, '<html>Not Found</html>', false],
  ['a redirect', 302, '', false],
  ['a refusal', 403, '', false],
])('after %s, the error says whether the outcome of a write is unknown', (_, status, body, outcomeUnknown) => {
  expect(refusal(status, body).outcomeUnknown).toBe(outcomeUnknown);
});

test('an error code in an answer with status 200 is an error', () => {
  expect(refusal(200, failed(100))).toBeInstanceOf(errors.EtcdKeyNotFound);
});

test('the error for a 404 in plain text explains how to enable the v2 API', () => {
  const error = refusal(404, '404 page not found\n', {});
  expect(error).toBeInstanceOf(errors.EtcdUnusableAnswer);
  expect(error.message).toContain('--enable-v2');
  expect(error.httpStatus).toBe(404);
});

test('the error for any other 404 does not mention `--enable-v2`', () => {
  expect(refusal(404, '<html>nginx</html>').message).not.toContain('--enable-v2');
});

test.each([401, 403])('status %i without a code is EtcdInsufficientPermissions', (status) => {
  for (const body of ['', '{"message":"Insufficient credentials"}', '<html>']) {
    expect(refusal(status, body)).toBeInstanceOf(errors.EtcdInsufficientPermissions);
    expect(refusal(status, body).httpStatus).toBe(status);
  }
});

test('the error message shows the beginning of a long page, on one line', () => {
  const { message } = refusal(502, `<html>\n${'x'.repeat(5000)}`);
  expect(message).toMatch(/^answered 502: "<html> x+…"$/);
  expect(message.length).toBeLessThan(150);
});

function refusal(status: number, body: unknown, headers?: Record<string, string>): errors.EtcdException {
  const thrown = [decodeChange, decodeSnapshot].map((decode) => {
    try {
      decode(wireAnswer(status, body, headers), '/x');
    } catch (error) {
      return error;
    }
    return undefined;
  });
  const [error, other] = thrown;
  if (!(error instanceof errors.EtcdException)) throw new Error('expected a refusal, but the answer was decoded');
  expect(other).toEqual(error);
  return error;
}
