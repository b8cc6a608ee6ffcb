/** A request as it goes out, before anything is done with it. */
export interface WireRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** Below the version prefix, percent-encoded, such as `/keys/_locks/x`. */
  readonly path: string;
  /** Whether that is beside the version prefix instead. */
  readonly unversioned?: boolean;
  /** URL-encoded; empty where there is nothing to say. */
  readonly query: string;
  /** URL-encoded. */
  readonly form?: string;
}

/** An answer as it came, before anything is made of it. */
export interface WireAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
  /** When its request was sent: milliseconds on the monotonic clock. */
  readonly sentAt: number;
}

/** An answer as a server gives it. */
export interface WireReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

type Field = string | number | boolean | null | undefined;

/** URL-encodes what is not undefined or false; null is an empty text. */
export function params(fields: Record<string, Field>): string {
  let text = '';
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined && value !== false) text += `${text && '&'}${name}=${encode(String(value ?? ''))}`;
  }
  return text;
}

/** What most texts consist of, and URL encoding leaves alone. */
const PLAIN = /^[\w.-]*$/;

const encode = (text: string): string =>
  PLAIN.test(text) ? text : new URLSearchParams([['', text]]).toString().slice(1);

export function header({ headers }: WireAnswer, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value[0] : value;
}
