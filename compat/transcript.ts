import { readFileSync } from 'node:fs';
import { Historian, type Histories, type SeenEntry } from './history.ts';
import { directoryOf } from './sides.ts';

const file = new URL('transcripts/python-etcd.json', import.meta.url);

export interface Exchange {
  /** Seconds from the scenario's first request to this one. */
  readonly at: number;
  /** Seconds from the scenario's first request to the end of the answer. */
  readonly done: number;
  readonly request: { readonly method: string; readonly path: string; readonly body: string | null };
  readonly response: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: Answer | string | null;
  };
}

interface Answer {
  readonly action?: string;
  readonly errorCode?: number;
  /** The root has no key. */
  readonly node?: { readonly key?: string };
}

export interface Scenario {
  readonly scenario: string;
  /** The time of its first request, in ISO 8601. */
  readonly started: string;
  readonly exchanges: readonly Exchange[];
}

/** python-etcd's requests and etcd's answers: `npm run record` makes them. */
export const scenarios = scenariosIn(file);

/** The scenarios in a file that `npm run record` has written. */
export function scenariosIn(path: URL | string): readonly Scenario[] {
  return (JSON.parse(readFileSync(path, 'utf8')) as { scenarios: readonly Scenario[] }).scenarios;
}

/** Seconds: replaces a recorded TTL of 1, which is too short to observe on a busy machine. */
export const SHORT_TTL = 3;

/** Seconds from the end of a TTL until the key has certainly been removed: etcd removes expired keys every 500 ms. */
const EXPIRY_TICK = 0.6;

/** Derives the histories of python-etcd's queues from its requests and the answers. */
export function recordedHistories({ exchanges }: Scenario): Histories {
  const queues = new Map<string, RecordedQueue>();
  let now = 0;
  for (const { request, response, done } of [...exchanges].sort((a, b) => a.done - b.done)) {
    now = done;
    for (const queue of queues.values()) queue.expireBefore(now);
    const { action, key } = outcomeOf(response);
    if (key === undefined) continue;
    const directory = directoryOf(key);
    if (request.method === 'POST' && !queues.has(directory)) queues.set(directory, new RecordedQueue());
    const queue = queues.get(directory);
    if (request.method === 'POST')
      queue?.historian.append({ ...request, body: request.body?.replace(/\bttl=1$/, `ttl=${SHORT_TTL}`) ?? null });
    if (request.method === 'POST' || request.method === 'PUT') queue?.write(key, request.body, now);
    else if (action === 'delete' || action === 'expire') queue?.remove(key);
  }
  // The recording may end before a key with a short TTL has expired.
  for (const queue of queues.values()) queue.expireBefore(now + 3);
  return Object.fromEntries([...queues].map(([directory, { historian }]) => [directory, historian.history]));
}

/** The action and key of a successful answer. */
function outcomeOf({ status, body }: Exchange['response']): { action?: string | undefined; key?: string | undefined } {
  if (status >= 300 || typeof body === 'string') return {};
  return { action: body?.action, key: body?.node?.key };
}

class RecordedQueue {
  readonly historian = new Historian();
  readonly #entries = new Map<string, SeenEntry & { readonly expires: number }>();

  write(key: string, body: string | null, now: number): void {
    const { value = '', ttl } = Object.fromEntries(new URLSearchParams(body ?? ''));
    const expires = ttl === undefined ? Number.POSITIVE_INFINITY : now + Number(ttl) + EXPIRY_TICK;
    this.#entries.set(key, { key, value, expires, ...(ttl !== undefined && { ttl: Number(ttl) }) });
    this.#changed();
  }

  remove(key: string): void {
    this.#entries.delete(key);
    this.#changed();
  }

  expireBefore(now: number): void {
    for (const [key, { expires }] of this.#entries) if (expires < now) this.remove(key);
  }

  #changed(): void {
    this.historian.state([...this.#entries.values()].sort((a, b) => (a.key < b.key ? -1 : 1)));
  }
}
