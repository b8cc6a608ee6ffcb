import { EtcdUnusableAnswer } from '../../errors.ts';
import type { WireAnswer } from '../../http/message.ts';
import { decodeCancellation, decodeError } from '../gateway/errors.ts';
import { decodeText, Fields, type Json } from '../gateway/messages.ts';
import { decodeEntry, type V3Entry } from './entry.ts';

/** Maximum characters of one message. A message about entries of locks is far shorter. */
const LONGEST_MESSAGE = 4 * 1024 * 1024;

/**
 * Splits a stream into JSON objects. The gateway does not promise a newline between them, or that a piece of the stream ends where
 * an object does.
 */
export class JsonObjects {
  readonly #onObject: (text: string) => void;
  #text = '';
  /** Number of characters of the text that have been parsed. */
  #seen = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;
  readonly #decoder = new TextDecoder();

  constructor(onObject: (text: string) => void) {
    this.#onObject = onObject;
  }

  /** @throws {EtcdUnusableAnswer} if an object is too long */
  add(chunk: Buffer): void {
    this.#text += this.#decoder.decode(chunk, { stream: true });
    for (; this.#seen < this.#text.length; this.#seen += 1) this.#step(this.#text[this.#seen] ?? '');
    if (this.#text.length > LONGEST_MESSAGE) throw new EtcdUnusableAnswer('a watch message is too long');
  }

  #step(char: string): void {
    if (this.#escaped) this.#escaped = false;
    else if (this.#inString) {
      if (char === '\\') this.#escaped = true;
      else if (char === '"') this.#inString = false;
    } else if (char === '"') this.#inString = true;
    else if (char === '{') this.#depth += 1;
    else if (char === '}') this.#close();
  }

  #close(): void {
    this.#depth -= 1;
    if (this.#depth > 0) return;
    const object = this.#text.slice(0, this.#seen + 1);
    this.#text = this.#text.slice(this.#seen + 1);
    this.#seen = -1;
    this.#depth = 0;
    this.#onObject(object.trim());
  }
}

/** A change of a watched key. */
export interface EntryChange {
  readonly key: string;
  /** The revision of the change. */
  readonly revision: bigint;
  /** The entry after the change; undefined: it was deleted. */
  readonly written: V3Entry | undefined;
  /** The entry before the change, if the watch asked for it and the entry existed. */
  readonly previous: V3Entry | undefined;
}

/** One decoded message of a stream of watches. */
export interface WatchMessage {
  /** Whether the message confirms that one of the watches has begun. */
  readonly isCreated: boolean;
  /** Whether etcd no longer has all events since the start revision of a watch: the keys must be read again. */
  readonly isCompacted: boolean;
  readonly events: readonly EntryChange[];
}

/**
 * Decodes a message of a watch.
 * @throws the error that the message reports, such as {@link EtcdConnectionFailed} when the member has ended the watch
 */
export function decodeWatchMessage(text: string): WatchMessage {
  const answer: WireAnswer = { status: 200, headers: {}, body: text, sentAt: 0 };
  let body: Json;
  try {
    body = JSON.parse(text) as Json;
  } catch {
    throw new EtcdUnusableAnswer('a watch message is not JSON');
  }
  if (body['error'] !== undefined) throw decodeError({ ...answer, status: 503 }, body);
  const result = new Fields(answer, body).message('result');
  const isCompacted = result.integer('compact_revision') > 0n;
  if (result.flag('canceled') && !isCompacted) throw decodeCancellation(result.text('cancel_reason'));
  const events = result.list('events').map((event) => {
    const changed = event.message('kv');
    const previous = event.optional('prev_kv');
    return {
      key: decodeText(changed.raw('key')),
      revision: changed.positive('mod_revision'),
      written: event.text('type') === 'DELETE' ? undefined : decodeEntry(changed),
      previous: previous && decodeEntry(previous),
    };
  });
  return { isCreated: result.flag('created'), isCompacted, events };
}
