import type { Exchange as Recorded, Scenario } from '../../../compat/transcript.ts';
import type { Asked } from '../differential/exchange.ts';

/** A node in comparable form. */
export interface ComparableNode {
  readonly key?: string;
  readonly dir?: boolean;
  readonly ttl?: string;
  readonly expiration?: string;
  readonly createdIndex?: number | string;
  readonly nodes?: readonly ComparableNode[];
}

export interface AnswerBody {
  readonly action?: string;
  readonly node?: ComparableNode;
  readonly prevNode?: ComparableNode;
  readonly errorCode?: number;
  readonly message?: string;
  readonly cause?: string;
  readonly index?: string;
}

/** An answer in comparable form: what differs in every run is replaced. */
export interface Answer {
  readonly status: number;
  readonly type: string | undefined;
  /** Whether it has an `X-Etcd-Index`. */
  readonly indexed: boolean;
  readonly body: string | AnswerBody;
}

/** Seconds from the end of a recorded TTL until the key was gone. */
const TICK = 0.6;

/**
 * Sends the recorded requests of a scenario again. A request waits for the answers that python-etcd had by then, and for the
 * entries that had expired.
 * @param serverOf returns where to send a request
 * @param untilGone waits until there is no entry with this number in a directory
 * @returns the recorded answers and ours, with the recorded names and indexes of entries
 */
export async function replay(
  { exchanges }: Scenario,
  serverOf: (path: string) => Asked,
  untilGone: (directory: string, number: bigint) => Promise<unknown>,
): Promise<{ readonly recorded: Recorded; readonly theirs: Answer; readonly ours: Answer }[]> {
  const numbers = new Numbers();
  const sent = new Map<Recorded, Promise<Answer>>();
  for (const recorded of exchanges.toSorted((a, b) => a.at - b.at)) {
    const { method, path, body } = recorded.request;
    for (const [{ done }, answer] of sent) if (done <= recorded.at) await answer;
    for (const key of expiredBefore(recorded.at, exchanges)) {
      const [directory, number] = numbers.split(key);
      await untilGone(directory, number);
    }
    const request = { method, target: numbers.toOurs(path), ...(body === null ? {} : { form: body }) };
    const answer = await serverOf(path).ask(request);
    const { 'content-type': type, 'x-etcd-index': index } = answer.headers;
    const comparableOnce = answer.whole().then((text): Answer => {
      numbers.learn(recorded, text);
      return {
        status: answer.status,
        type,
        indexed: index !== undefined,
        body: bodyOf(numbers.toTheirs(text)),
      };
    });
    sent.set(recorded, comparableOnce);
  }
  const pairs = [...sent].map(async ([recorded, ours]) => ({
    recorded,
    theirs: recordedAnswer(recorded),
    ours: await ours,
  }));
  return Promise.all(pairs);
}

function recordedAnswer({ response: { status, headers, body } }: Recorded): Answer {
  const { 'Content-Type': type, 'X-Etcd-Index': index } = headers;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return { status, type, indexed: index !== undefined, body: bodyOf(text) };
}

/** The keys that were created with a TTL which had passed at that time. */
const expiredBefore = (at: number, exchanges: readonly Recorded[]): string[] =>
  exchanges.flatMap(({ request, response: { body }, done }) => {
    const ttl = Number(/\bttl=(\d+)/.exec(request.body ?? '')?.[1] ?? 0);
    const key = typeof body === 'string' ? undefined : body?.node?.key;
    return request.method === 'POST' && ttl > 0 && key !== undefined && done + ttl + TICK < at ? [key] : [];
  });

/** Returns a body in comparable form. One that is not JSON stays as it is. */
function bodyOf(text: string): Answer['body'] {
  try {
    return JSON.parse(text, (name, value) => {
      if (name === 'expiration') return 'some time';
      if (name === 'ttl') return `at most ${Math.ceil(value / 10) * 10} s`;
      if (name === 'index' || name === 'modifiedIndex') return 'some index';
      if (name === 'nodes') return value.toSorted((a: { key: string }, b: { key: string }) => (a.key < b.key ? -1 : 1));
      return value?.dir ? { ...value, createdIndex: 'some index' } : value;
    });
  } catch {
    return text;
  }
}

interface Indexed {
  readonly createdIndex: number;
  readonly modifiedIndex: number;
}

/** The numbers of entries, and the indexes of writes: as recorded, and here. */
class Numbers {
  readonly #ours = new Map<number, number>();
  readonly #names = new Map<number, number>();
  readonly #theirs = new Map<number, number>();

  /** Learns them from the answer to a write. */
  learn({ request, response: { body } }: Recorded, text: string): void {
    if (!['POST', 'PUT'].includes(request.method) || typeof body === 'string' || !text.startsWith('{')) return;
    const [theirs, ours] = [body, JSON.parse(text)].map((answer) => (answer as { node?: Indexed } | null)?.node);
    if (theirs === undefined || ours === undefined) return;
    this.#ours.set(theirs.modifiedIndex, ours.modifiedIndex);
    if (request.method === 'POST') {
      this.#names.set(theirs.createdIndex, ours.createdIndex);
      this.#theirs.set(ours.createdIndex, theirs.createdIndex);
    }
  }

  toOurs(path: string): string {
    return path
      .replace(/\d{20}/g, (name) => String(this.#names.get(Number(name)) ?? Number(name)).padStart(20, '0'))
      .replace(/(?<=waitIndex=)\d+/, (index) => String((this.#ours.get(Number(index) - 1) ?? Number.NaN) + 1));
  }

  toTheirs(text: string): string {
    const theirs = (number: string) => String(this.#theirs.get(Number(number)) ?? number);
    return text
      .replace(/\d{20}/g, (name) => theirs(name).padStart(20, '0'))
      .replace(/(?<="createdIndex":)\d+/g, theirs);
  }

  /** The directory of a recorded key, and the number that its entry has here. */
  split(key: string): [string, bigint] {
    const slash = key.lastIndexOf('/');
    return [key.slice(0, slash), BigInt(this.#names.get(Number(key.slice(slash + 1))) ?? 0)];
  }
}
