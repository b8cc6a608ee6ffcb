import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';

const FORM = 'application/x-www-form-urlencoded';

/** A percent-encoded request for both servers. */
export interface Wanted {
  readonly method: string;
  /** Path and query below the server's address. */
  readonly target: string;
  readonly form?: string;
  /** @default that of a form */
  readonly type?: string;
}

/** An answer, whose body may still be arriving. */
export interface Exchange {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** The part of the body received so far. */
  readonly body: () => string;
  readonly ended: () => boolean;
  /** Resolves to the whole body. */
  whole(): Promise<string>;
  abort(): void;
}

/** A client of one of the two servers. */
export class Asked {
  readonly url: string;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string) {
    this.url = url;
  }

  /** Sends a request. Resolves when the headers of the answer arrive. */
  ask({ method, target, form, type = FORM }: Wanted): Promise<Exchange> {
    return new Promise((resolve, reject) => {
      const { hostname, port } = new URL(this.url);
      const headers = form === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(form) };
      const asked = request({ hostname, port, agent: this.#agent, method, path: target, headers });
      asked.on('error', reject);
      asked.on('response', (answer) => resolve(follow(answer, () => asked.destroy())));
      asked.end(form);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function follow(answer: IncomingMessage, abort: () => void): Exchange {
  let body = '';
  answer.setEncoding('utf8').on('data', (text) => {
    body += text;
  });
  answer.on('error', () => {}); // from `abort`
  const ended = () => answer.complete;
  const whole = async () => {
    if (!ended()) await once(answer, 'end', { signal: AbortSignal.timeout(10_000) });
    return body;
  };
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: () => body, ended, whole, abort };
}
