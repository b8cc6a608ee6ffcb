import { Agent, request } from 'undici';

/** A request for both servers. */
export interface Wanted {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** An answer whose lines arrive one by one. */
export interface Lines {
  /** The complete lines received so far. */
  readonly lines: readonly string[];
  close(): void;
}

/** A client of one of the two servers. */
export class Client {
  readonly url: string;
  readonly #agent = new Agent({ headersTimeout: 10_000, bodyTimeout: 0 });

  constructor(url: string) {
    this.url = url;
  }

  async ask({ method, path, body, headers = {} }: Wanted): Promise<Answer> {
    const answer = await request(`${this.url}${path}`, {
      dispatcher: this.#agent,
      method: method as 'POST',
      headers,
      ...(body === undefined ? {} : { body }),
    });
    return { status: answer.statusCode, headers: answer.headers, body: await answer.body.text() };
  }

  /** Sends a message. Resolves to the answer's message. */
  async post(path: string, message: object): Promise<Record<string, unknown>> {
    const { body } = await this.ask({ method: 'POST', path, body: JSON.stringify(message) });
    return JSON.parse(body) as Record<string, unknown>;
  }

  /** Opens a stream. Resolves when the headers of the answer arrive. */
  async stream({ method, path, body, headers = {} }: Wanted): Promise<Lines> {
    const abort = new AbortController();
    const answer = await request(`${this.url}${path}`, {
      dispatcher: this.#agent,
      method: method as 'POST',
      headers,
      body: body ?? null,
      signal: abort.signal,
    });
    const lines: string[] = [];
    let rest = '';
    answer.body.setEncoding('utf8');
    answer.body.on('data', (text: string) => {
      const parts = `${rest}${text}`.split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts);
    });
    answer.body.on('error', () => {}); // from `close`
    return { lines, close: () => abort.abort() };
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }
}
