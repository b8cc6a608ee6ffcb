/** A request before it is sent. */
export interface WireRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Path below the version prefix, percent-encoded, such as `/keys/_locks/x`. */
  readonly path: string;
  /** Whether to send the path without the version prefix. */
  readonly unversioned?: boolean;
  /** URL-encoded; empty for none. */
  readonly query: string;
  /** URL-encoded. */
  readonly form?: string;
  /** A JSON text, instead of a form. */
  readonly json?: string;
  /** All headers: names and values in turn, as undici expects them. Default: the type of the body, and the credentials of the client. */
  readonly headers?: string[];
}

/** An answer as a client receives it, not decoded yet. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
  /** When the request was sent: milliseconds on the monotonic clock. */
  readonly sentAt: number;
}

/** For an answer that may take long to arrive. Its timeout starts again with the headers and with each piece of the body. */
export interface LongAnswer {
  /** Seconds without a piece after which the exchange ends. */
  readonly silence: number;
  /** Maximum seconds of the whole exchange, however many pieces arrive. */
  readonly within: number;
  /** Called when the headers have arrived, and again for pieces of the body, at most once in 10 ms. */
  readonly onPiece: () => void;
}

/** An answer as a server sends it. */
export interface WireReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Returns a header's value, the first one if there are several. */
export function header({ headers }: WireAnswer, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value[0] : value;
}
