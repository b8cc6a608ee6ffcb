import type { Exchange } from './exchange.ts';

/** Headers that must be the same. The cluster id, raft's own counters, dates and how the connection is kept are each server's own. */
const HEADERS = ['content-type', 'x-etcd-index', 'location', 'allow'];

/** What one server answered, with what must differ made alike. */
export interface Mapped {
  readonly status: number;
  readonly headers: Record<string, string | undefined>;
  readonly body: unknown;
}

/** @param sorted whether children must come in the same order */
export function mapped({ status, headers }: Exchange, body: string, sorted: boolean): Mapped {
  const kept = Object.fromEntries(HEADERS.map((name) => [name, headers[name]?.toString()]));
  return { status, headers: kept, body: mappedBody(body, sorted) };
}

/** To the letter, but for the times. */
export const masked = (body: string): string => body.replace(/"expiration":"[^"]+"/g, '"expiration":"some time"');

/**
 * Line by line; what is not JSON stays as it is.
 * @param step the two servers are not asked at the very same moment: seconds within which a TTL counts as the same, of
 * which all TTLs in use are multiples
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
    // As text, so that the order of the fields counts, too.
    return asText(JSON.parse(line));
  } catch {
    return line;
  }
}
