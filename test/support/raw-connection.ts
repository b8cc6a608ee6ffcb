import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { until } from './until.ts';

export interface RawAnswer {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The part received so far. */
  readonly body: string;
  /** Whether the body is complete. */
  readonly whole: boolean;
}

/** A client that sends any bytes and can disconnect at any time. The end of the test closes its connection. */
export class RawConnection {
  readonly socket: Socket;
  /** Everything the server has sent, one character per byte. */
  text = '';

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.text += text;
    });
    // The tests make servers reset the connection.
    socket.on('error', () => {});
    onTestFinished(() => {
      socket.destroy();
    });
  }

  static async open(url: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const connection = new RawConnection(connect(Number(port), hostname.replace(/^\[|\]$/g, '')));
    await once(connection.socket, 'connect');
    return connection;
  }

  /** @param text one character per byte */
  send(text: string): this {
    this.socket.write(text, 'latin1');
    return this;
  }

  /** Waits until everything sent has left this process. */
  flushed(): Promise<void> {
    return new Promise((resolve) => {
      this.socket.write('', () => resolve());
    });
  }

  /** Every answer that has begun, except informational ones such as "100 Continue". */
  get answers(): readonly RawAnswer[] {
    return answersIn(this.text).filter(({ status }) => status >= 200);
  }

  /** Waits until `count` answers are complete. */
  wholeAnswers(count: number): Promise<readonly RawAnswer[]> {
    return until(
      () => this.answers.filter(({ whole }) => whole),
      (answers) => answers.length >= count,
    );
  }

  /** Waits until the headers of `count` answers have arrived. */
  begun(count: number): Promise<readonly RawAnswer[]> {
    return until(
      () => this.answers,
      (answers) => answers.length >= count,
    );
  }

  /** Waits until the server's output begins with `start`. */
  async received(start: string): Promise<void> {
    await until(
      () => this.text,
      (text) => text.startsWith(start),
    );
  }

  /** Waits until the server has closed the connection; resolves to everything it sent. */
  async closed(): Promise<string> {
    await until(
      () => this.socket.closed,
      (closed) => closed,
    );
    return this.text;
  }

  /** Closes the sending direction and keeps reading. */
  halfClose(): void {
    this.socket.end();
  }

  hangUp(): void {
    this.socket.destroy();
  }

  /** Resets the connection (RST instead of FIN). */
  reset(): void {
    this.socket.resetAndDestroy();
  }
}

/** Parses only what this server sends: bodies by length, in chunks, or none after a HEAD (which no test mixes with others). */
function answersIn(text: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let rest = text; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) break;
    const [line = '', ...fields] = rest.slice(0, end).split('\r\n');
    const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(`${line} `)?.[1]);
    const headers = Object.fromEntries(
      fields.map((field) => {
        const [name = '', ...value] = field.split(':');
        return [name.toLowerCase(), value.join(':').trim()];
      }),
    );
    const { body, whole, length } = bodyOf(headers, status, rest.slice(end + 4));
    answers.push({ status, headers, body, whole });
    rest = rest.slice(end + 4 + length);
  }
  return answers;
}

function bodyOf(headers: Record<string, string>, status: number, rest: string) {
  if (headers['transfer-encoding'] === 'chunked') return chunksIn(rest);
  const length = status < 200 ? 0 : Number(headers['content-length'] ?? 0);
  const body = rest.slice(0, length);
  return { body, whole: body.length === length, length };
}

function chunksIn(rest: string) {
  let body = '';
  let at = 0;
  for (;;) {
    const size = /^([0-9a-f]+)\r\n/.exec(rest.slice(at, at + 20));
    if (!size?.[1]) return { body, whole: false, length: rest.length };
    const from = at + size[0].length;
    const length = Number.parseInt(size[1], 16);
    body += rest.slice(from, from + length);
    at = from + length + 2;
    if (at > rest.length) return { body, whole: false, length: rest.length };
    if (length === 0) return { body, whole: true, length: at };
  }
}

/** A complete request with its Content-Length. */
export function request(method: string, path: string, { form = '', headers = '' } = {}): string {
  const type = form === '' ? '' : 'Content-Type: application/x-www-form-urlencoded\r\n';
  const length = form === '' && ['GET', 'HEAD', 'DELETE'].includes(method) ? '' : `Content-Length: ${form.length}\r\n`;
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${type}${length}${headers}\r\n${form}`;
}

export const get = (key: string): string => request('GET', `/v2/keys${key}`);

export const put = (key: string, value: string): string => request('PUT', `/v2/keys${key}`, { form: `value=${value}` });

export const poll = (key: string): string => request('GET', `/v2/keys${key}?wait=true`);
