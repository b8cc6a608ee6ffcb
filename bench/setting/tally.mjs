import { HTTPParser } from 'http-parser-js';
import { Http2Frames, PREFACE } from './http2-frames.mjs';

/** Counts the requests and answers that pass through a proxy. */
export class Tally {
  #kinds = {};
  #bytes = 0;
  #trips = 0;
  #connections = 0;
  #open = 0;
  #answered = true;

  /**
   * Adds a connection. Call `request` with every chunk from the client on arrival, and `answer` with every chunk from etcd when
   * it is forwarded.
   */
  connection() {
    this.#connections += 1;
    this.#open += 1;
    let ways;
    return {
      request: (chunk) => {
        this.#bytes += chunk.length;
        ways ??= isHttp2(chunk) ? this.#http2() : this.#http1();
        ways.request(chunk);
      },
      answer: (chunk) => {
        this.#bytes += chunk.length;
        ways?.answer(chunk);
      },
      closed: () => {
        this.#open -= 1;
      },
    };
  }

  /** Returns requests by kind, round trips, bytes and new connections since the last call, and the number of open connections. */
  take() {
    const kinds = this.#kinds;
    const requests = Object.values(kinds).reduce((sum, count) => sum + count, 0);
    const [trips, bytes, connections, open] = [this.#trips, this.#bytes, this.#connections, this.#open];
    this.#kinds = {};
    this.#bytes = 0;
    this.#trips = 0;
    this.#connections = 0;
    this.#answered = true;
    return { requests, kinds, trips, bytes, connections, open };
  }

  /** Counts a request. A request before the first answer of the current round trip belongs to that round trip. */
  #requested(kind) {
    this.#kinds[kind] = (this.#kinds[kind] ?? 0) + 1;
    if (this.#answered) this.#trips += 1;
    this.#answered = false;
  }

  #http1() {
    return {
      request: parser(HTTPParser.REQUEST, {
        onEnd: ({ method, url }, body) => this.#requested(kindOf(HTTPParser.methods[method], url, body)),
      }),
      answer: parser(HTTPParser.RESPONSE, {
        // The answer of a watch has no end: each message is an answer.
        onBody: () => {
          this.#answered = true;
        },
        onEnd: () => {
          this.#answered = true;
        },
      }),
    };
  }

  #http2() {
    const asked = new Http2Frames({ skip: PREFACE.length, onStreamBegun: () => this.#requested('rpc') });
    const answered = new Http2Frames({
      skip: 0,
      onStreamEnded: () => {
        this.#answered = true;
      },
    });
    return { request: (chunk) => asked.take(chunk), answer: (chunk) => answered.take(chunk) };
  }
}

const isHttp2 = (chunk) => chunk.subarray(0, 3).toString('latin1') === PREFACE.slice(0, 3);

function parser(type, { onBody = () => {}, onEnd }) {
  const parsing = new HTTPParser(type);
  let head;
  let body;
  parsing[HTTPParser.kOnHeadersComplete] = (info) => {
    head = info;
    body = '';
  };
  parsing[HTTPParser.kOnBody] = (chunk, start, length) => {
    if (type === HTTPParser.REQUEST) body += chunk.toString('latin1', start, start + length);
    onBody();
  };
  parsing[HTTPParser.kOnMessageComplete] = () => onEnd(head, body);
  return (chunk) => {
    const problem = parsing.execute(chunk);
    if (problem instanceof Error) throw problem;
  };
}

const GATEWAY = {
  '/v3/kv/range': 'read',
  '/v3/kv/lease/revoke': 'revocation',
  '/v3/kv/lease/timetolive': 'comparison', // of the keys of a lease with those in use
  '/v3/lease/grant': 'grant',
  '/v3/lease/keepalive': 'renewal',
  '/v3/watch': 'poll',
};

function kindOf(method, url, body) {
  const { pathname, searchParams } = new URL(url, 'http://etcd');
  if (pathname === '/v3/kv/txn') return kindOfTransaction(body);
  if (pathname === '/v3/kv/deleterange') return 'removal';
  if (pathname in GATEWAY) return GATEWAY[pathname];
  if (!pathname.startsWith('/v2/keys')) return 'other';
  if (method !== 'GET') return { POST: 'append', PUT: 'renewal', DELETE: 'removal' }[method];
  return searchParams.get('wait') === 'true' ? 'poll' : 'read';
}

function kindOfTransaction(body) {
  if (body.includes('"request_put"')) return 'append';
  if (body.includes('"request_delete_range"')) return 'removal';
  if (body.includes('"max_create_revision"')) return 'read';
  // Reads of own entries: of so many that they need transactions inside, or of those that a stream is about to watch.
  return body.includes('"request_txn"') ? 'confirmation' : 'check';
}
