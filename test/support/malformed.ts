const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';
const PUT = `PUT /v2/keys/k HTTP/1.1\r\nHost: localhost\r\n${FORM}`;

/** Requests that no server can understand, by what is wrong with each. */
export const MALFORMED: readonly (readonly [what: string, text: string])[] = [
  ['bytes that are not HTTP', '\x00\x01\x02\xff\xfe garbage\r\n\r\n'],
  ['a TLS hello', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  ['a request line without a target', 'GET\r\n\r\n'],
  ['a request line with an extra word', 'GET /version HTTP/1.1 please\r\n\r\n'],
  ['an unknown version of HTTP', 'GET /version HTTP/7.3\r\nHost: localhost\r\n\r\n'],
  ['an unknown method', 'FROBNICATE /v2/keys/k HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  ['a request without a host', 'GET /version HTTP/1.1\r\n\r\n'],
  ['a header without a colon', 'GET /version HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n'],
  ['a header with a zero byte', 'GET /version HTTP/1.1\r\nHost: et\x00cd\r\n\r\n'],
  ['a length that is not a number', `${PUT}Content-Length: seven\r\n\r\nvalue=1`],
  ['a negative length', `${PUT}Content-Length: -1\r\n\r\nvalue=1`],
  ['a length that is too large', `${PUT}Content-Length: 99999999999999999999999\r\n\r\nvalue=1`],
  ['two lengths', `${PUT}Content-Length: 7\r\nContent-Length: 8\r\n\r\nvalue=1`],
  ['a length and chunks', `${PUT}Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n7\r\nvalue=1\r\n0\r\n\r\n`],
  ['a chunk whose size is not a number', `${PUT}Transfer-Encoding: chunked\r\n\r\nzz\r\nvalue=1\r\n0\r\n\r\n`],
  ['a chunk with a negative size', `${PUT}Transfer-Encoding: chunked\r\n\r\n-7\r\nvalue=1\r\n0\r\n\r\n`],
  ['a chunk whose size is too large', `${PUT}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nvalue=1\r\n`],
  ['a chunk longer than its size', `${PUT}Transfer-Encoding: chunked\r\n\r\n3\r\nvalue=1\r\n0\r\n\r\n`],
];
