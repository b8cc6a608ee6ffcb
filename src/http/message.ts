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

export function header({ headers }: WireAnswer, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value[0] : value;
}
