const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';

/** A write of v2: its request line, and its headers without those about the length of its body. */
const PUT = `PUT /v2/keys/k HTTP/1.1\r\nHost: localhost\r\n${FORM}`;

/** A request, and what is wrong with it. */
type Malformed = readonly [what: string, text: string];

/** Requests whose line or headers no server can understand. */
const MALFORMED_HEADS: readonly Malformed[] = [
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
];

/** Writes whose body has no length that a server can understand. @param head of the write @param body of 7 bytes or more */
export const malformedWrites = (head: string, body: string): readonly Malformed[] => {
  const size = body.length.toString(16);
  return [
    ['a length that is not a number', `${head}Content-Length: seven\r\n\r\n${body}`],
    ['a negative length', `${head}Content-Length: -1\r\n\r\n${body}`],
    ['a length that is too large', `${head}Content-Length: 99999999999999999999999\r\n\r\n${body}`],
    ['two lengths', `${head}Content-Length: ${body.length}\r\nContent-Length: ${body.length + 1}\r\n\r\n${body}`],
    [
      'a length and chunks',
      `${head}Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${body}\r\n0\r\n\r\n`,
    ],
    ['a chunk whose size is not a number', `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n${body}\r\n0\r\n\r\n`],
    ['a chunk with a negative size', `${head}Transfer-Encoding: chunked\r\n\r\n-${size}\r\n${body}\r\n0\r\n\r\n`],
    ['a chunk whose size is too large', `${head}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n${body}\r\n`],
    ['a chunk longer than its size', `${head}Transfer-Encoding: chunked\r\n\r\n3\r\n${body}\r\n0\r\n\r\n`],
  ];
};

/** Requests that no server can understand, by what is wrong with each. */
export const MALFORMED = [...MALFORMED_HEADS, ...malformedWrites(PUT, 'value=1')];
