import type { Answer } from './client.ts';

/** Headers that must be the same. Others may differ: dates, connection settings, trailers and those for web pages. */
const HEADERS = ['content-type', 'grpc-metadata-content-type', 'location', 'allow'];

/** An answer in comparable form: what may differ is left out. */
export interface Comparable {
  readonly status: number;
  readonly headers: Record<string, string | undefined>;
  /** Each line of the body. */
  readonly lines: readonly string[];
}

export function comparable({ status, headers, body }: Answer): Comparable {
  const kept = Object.fromEntries(HEADERS.map((name) => [name, headers[name]?.toString()]));
  return { status, headers: kept, lines: body.split('\n').map(comparableLine) };
}

/** Rounds up what is left of a TTL in seconds. All TTLs in use are multiples of this. */
const STEP = 100;

/** The two clusters have other ids; raft's terms and counters depend on their past. */
const OWN = new Set([
  'cluster_id',
  'member_id',
  'raft_term',
  'leader',
  'raftIndex',
  'raftTerm',
  'raftAppliedIndex',
  'dbSize',
  'dbSizeInUse',
]);

/** Maps a line. As text, to compare the order of the fields, too. */
export function comparableLine(line: string): string {
  const mask = (name: string, value: unknown): unknown => {
    if (OWN.has(name)) return undefined;
    if (name === 'TTL' && Number(value) > 0) return String(Math.ceil(Number(value) / STEP) * STEP);
    // In etcd, the keys of a lease have no order.
    if (name === 'keys' && Array.isArray(value)) return value.toSorted();
    // The library of etcd 3.6 that decodes requests has one of two spaces in its errors.
    return typeof value === 'string' ? value.replaceAll('\u00a0', ' ') : value;
  };
  try {
    return JSON.stringify(JSON.parse(line), mask);
  } catch {
    return line;
  }
}
