import type { Exchange } from './exchange.ts';

/** Headers that must be the same. Others may differ: the cluster id, raft's counters, dates and connection settings. */
const HEADERS = ['content-type', 'x-etcd-index', 'location', 'allow'];

/** An answer in comparable form: parts that may differ are replaced. */
export interface Mapped {
  readonly status: number;
  readonly headers: Record<string, string | undefined>;
  readonly body: unknown;
}

/** @param sorted whether children must be in the same order */
export function mapped({ status, headers }: Exchange, body: string, sorted: boolean): Mapped {
  const kept = Object.fromEntries(HEADERS.map((name) => [name, headers[name]?.toString()]));
  return { status, headers: kept, body: mappedBody(body, sorted) };
}

/** Replaces the times in a body. */
export const masked = (body: string): string => body.replace(/"expiration":"[^"]+"/g, '"expiration":"some time"');

/**
 * Maps a body line by line. Lines that are not JSON stay unchanged.
 * @param step seconds to which TTLs are rounded up, because the two servers do not get a request at exactly the same time.
 * All TTLs in use are multiples of this.
 */
export const mappedBody = (body: string, sorted: boolean, step = 100): unknown =>
  body.split('\n').map((line) => mappedLine(line, sorted, step));

function mappedLine(line: string, sorted: boolean, step: number): string {
  const asText = (value: unknown): string => JSON.stringify(value, mask);
  const mask = (name: string, value: unknown): unknown => {
    if (name === 'expiration') return 'some time';
    if (name === 'ttl') return `at most ${Math.ceil(Number(value) / step) * step} s`;
    if (name === 'nodes' && Array.isArray(value) && !sorted) return value.map(asText).sort();
    return value;
  };
  try {
    // As text, to compare the order of the fields too.
    return asText(JSON.parse(line));
  } catch {
    return line;
  }
}
