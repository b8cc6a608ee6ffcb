import fc from 'fast-check';
import { expect } from 'vitest';
import { until } from '../../../support/until.ts';
import { type Ask, asks } from './asks.ts';
import { badInput } from './bad-input.ts';
import type { Answer, Lines, Wanted } from './client.ts';
import { comparable } from './comparable.ts';
import type { Pair } from './pair.ts';
import { transcriptOf } from './transcript.ts';
import { base64, grown } from './tree.ts';
import { type Open, opens } from './watches.ts';

/** The known state, which must be the same on both servers. */
export interface Model {
  /** The latest revision. */
  revision: number;
  /** The revision of the last compaction. */
  compacted: number;
  readonly streams: Stream[];
  requests: number;
}

interface Stream {
  readonly wanted: Wanted;
  readonly real: Lines;
  readonly embedded: Lines;
}

/** A step of a sequence. It may follow any other. */
abstract class Step implements fc.AsyncCommand<Model, Pair> {
  abstract run(model: Model, pair: Pair): Promise<void>;

  check(): boolean {
    return true;
  }
}

/** Sends a request to both servers, and expects the same answer. Returns it. */
async function sameAnswer(wanted: Wanted, model: Model, { real, embedded }: Pair): Promise<Answer> {
  model.requests += 1;
  const [theirs, ours] = await Promise.all([real.ask(wanted), embedded.ask(wanted)]);
  expect(comparable(ours), shown(wanted)).toEqual(comparable(theirs));
  model.revision = Math.max(model.revision, Number(/"revision": ?"(\d+)"/.exec(theirs.body)?.[1] ?? 0));
  return theirs;
}

const post = (path: string, body: string): Wanted => ({ method: 'POST', path, body });

class Request extends Step {
  readonly #ask: Ask;

  constructor(ask: Ask) {
    super();
    this.#ask = ask;
  }

  async run(model: Model, pair: Pair): Promise<void> {
    const { prefix, path, message, camelCase } = this.#ask;
    const asked = grown(message, model.revision, camelCase);
    const { status } = await sameAnswer(post(`${prefix}${path}`, JSON.stringify(asked)), model, pair);
    if (path === '/kv/compaction' && status === 200)
      model.compacted = Number((asked as { readonly revision?: unknown }).revision);
  }

  override toString(): string {
    return JSON.stringify(this.#ask);
  }
}

class RawRequest extends Step {
  readonly #wanted: Wanted;

  constructor(wanted: Wanted) {
    super();
    this.#wanted = wanted;
  }

  async run(model: Model, pair: Pair): Promise<void> {
    await sameAnswer(this.#wanted, model, pair);
  }

  override toString(): string {
    return shown(this.#wanted);
  }
}

/** Grants a lease that would expire within the sequence, or whose id the server chooses. Revokes it at once. */
class ShortGrant extends Step {
  readonly #message: { readonly ID?: string; readonly TTL: number };

  constructor(message: { readonly ID?: string; readonly TTL: number }) {
    super();
    this.#message = message;
  }

  async run(model: Model, { real, embedded }: Pair): Promise<void> {
    model.requests += 1;
    const grant = async (server: Pair['real']) => {
      const { ID, TTL } = await server.post('/v3/lease/grant', this.#message);
      await server.post('/v3/lease/revoke', { ID });
      return { TTL, isChosen: this.#message.ID === undefined && /^\d{1,19}$/.test(String(ID)) };
    };
    const [theirs, ours] = await Promise.all([grant(real), grant(embedded)]);
    expect(ours, this.toString()).toEqual(theirs);
  }

  override toString(): string {
    return `grant ${JSON.stringify(this.#message)}`;
  }
}

const END = base64('\xff\xfe');
/** Id of a watch behind those of the step. It is created last, and sees the last events of the sequence. */
const LAST_WATCH = 1000;

/** Bytes of a body that etcd surely reads: when it sends the first answer, it may lose what it has not read yet. */
const READ_AT_ONCE = 512;

/**
 * Returns the first revision of a watch. etcd 3.4.23 loses the removal of a key at exactly the revision of the last compaction
 * (etcd issue 18089).
 */
function startOf(request: unknown): number | undefined {
  const { create_request: snake, createRequest: camel = snake } = request as Record<string, Record<string, unknown>>;
  const start = camel?.['start_revision'] ?? camel?.['startRevision'];
  return start === undefined ? undefined : Number(start);
}

/** A failure is repeated many times with shorter sequences: do not wait long for what does not come. */
const PATIENCE = { timeout: 5000, every: 1 };

class OpenStream extends Step {
  readonly #open: Open;

  constructor(open: Open) {
    super();
    this.#open = open;
  }

  async run(model: Model, pair: Pair): Promise<void> {
    const { requests, camelCase } = this.#open;
    let body = JSON.stringify({ create_request: { key: END, watch_id: LAST_WATCH } });
    for (const request of requests.map((one) => grown(one, model.revision, camelCase)).toReversed()) {
      const text = JSON.stringify(request);
      const isLost = pair.version === '3.4' && startOf(request) === model.compacted;
      if (!isLost && text.length + body.length < READ_AT_ONCE) body = `${text}\n${body}`;
    }
    const wanted = post('/v3/watch', body);
    model.requests += 1;
    const [real, embedded] = await Promise.all([pair.real.stream(wanted), pair.embedded.stream(wanted)]);
    model.streams.push({ wanted, real, embedded });
    for (const { lines } of [real, embedded])
      await until(() => lines.some((line) => isOfLastWatch(line)), Boolean, PATIENCE);
    await until(
      () => slowWatchers(pair),
      (count) => count === 0,
      { every: 20 },
    );
  }

  override toString(): string {
    return `watch ${JSON.stringify(this.#open)}`;
  }
}

/** Returns the number of watchers of etcd that have not caught up yet. */
async function slowWatchers({ real }: Pair): Promise<number> {
  const { body } = await real.ask({ method: 'GET', path: '/metrics' });
  return Number(/^etcd_debugging_mvcc_slow_watcher_total (\d+)/m.exec(body)?.[1]);
}

const isOfLastWatch = (line: string): boolean => new RegExp(`"watch_id": ?"${LAST_WATCH}"`).test(line);

const shown = ({ method, path, body }: Wanted): string => `${method} ${path} ${body ?? ''}`;

const shortGrants = fc
  .record({ ID: fc.constantFrom(undefined, '99'), TTL: fc.constantFrom(-1, 0, 1, 2, 3) })
  .map(({ ID, TTL }) => new ShortGrant(ID === undefined ? { TTL } : { ID, TTL }));

const steps: fc.Arbitrary<fc.AsyncCommand<Model, Pair>> = fc.oneof(
  { weight: 80, arbitrary: asks.map((ask) => new Request(ask)) },
  { weight: 15, arbitrary: badInput.map((wanted) => new RawRequest(wanted)) },
  { weight: 3, arbitrary: opens.map((open) => new OpenStream(open)) },
  { weight: 1, arbitrary: shortGrants },
);

export const sequences = fc.commands([steps], { maxCommands: 100, size: 'max' });

/**
 * Expects the same events and answers on every stream. Writes a key twice for that: etcd reports one revision to its watches in any order,
 * but all of it before the next one.
 */
export async function finish(model: Model, pair: Pair): Promise<void> {
  try {
    const write = post('/v3/kv/put', JSON.stringify({ key: END }));
    await sameAnswer(write, model, pair);
    const last = model.revision;
    await sameAnswer(write, model, pair);
    for (const { wanted, real, embedded } of model.streams) {
      for (const { lines } of [real, embedded])
        await until(
          () => writesSeen(lines),
          (count) => count === 2,
          PATIENCE,
        );
      expect(transcriptOf(embedded.lines, last), shown(wanted)).toEqual(transcriptOf(real.lines, last));
    }
  } finally {
    close(model);
  }
}

const writesSeen = (lines: readonly string[]): number =>
  transcriptOf(lines).events.get(String(LAST_WATCH))?.length ?? 0;

export function close({ streams }: Model): void {
  for (const { real, embedded } of streams) for (const lines of [real, embedded]) lines.close();
}
